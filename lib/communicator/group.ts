// What argument checks need to know of a communicator.

export interface Group {
  readonly size: number;
  /** The first rank held here. */
  readonly rank: number;
  /** One rank, or, of a group, each that this process holds. */
  readonly heldRanks: readonly number[];
  /** The GPU of each of these; empty where the ranks' arrays are in the memory of the host. */
  readonly gpus: readonly number[];
  /** Calls bring a list of arrays, one for each rank held here; else the one rank's array. */
  readonly takesLists: boolean;
}
