// What argument checks need to know of a communicator.

export interface Group {
  readonly size: number;
  /** The first held rank. */
  readonly rank: number;
  readonly heldRanks: readonly number[];
  /** The GPU of each held rank; empty where the ranks' arrays are in the memory of the host. */
  readonly gpus: readonly number[];
}
