// What argument checks need to know of a communicator.

export interface Group {
  readonly size: number;
  /** The first held rank. */
  readonly rank: number;
  readonly heldRanks: readonly number[];
}
