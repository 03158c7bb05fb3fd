// The remaining time of a run: estimated from its links, and corrected by the time so far.

/** Rate of allocating (including page-locked) and comparing the arrays of a figure. */
const bytesPerSecondBeside = 4e9;

/** For unknown links: PCIe generation 3 x16. */
const unknownRate = 12e9;

/** The work of one figure. */
export interface FigureWork {
  /** Per copy. */
  readonly bytes: number;
  /** Successive copies of all samples and the warm-up. */
  readonly copies: number;
  /** Parallel copies. */
  readonly lanes: number;
  /** Of the slowest link; undefined if unknown. */
  readonly bytesPerSecond: number | undefined;
}

/** The estimated seconds of one figure. */
export function figureSeconds({ bytes, copies, lanes, bytesPerSecond }: FigureWork): number {
  return (
    (bytes * copies) / (bytesPerSecond ?? unknownRate) + (bytes * lanes) / bytesPerSecondBeside
  );
}

/**
 * Remaining seconds.
 *
 * @param guessed estimates of all parts, in order
 * @param done number of finished parts
 * @param elapsed seconds since the start
 */
export function secondsLeft(guessed: readonly number[], done: number, elapsed: number): number {
  const sum = (parts: readonly number[]): number => parts.reduce((all, one) => all + one, 0);
  const over = sum(guessed.slice(0, done));
  const left = sum(guessed.slice(done));
  return over > 0 ? (left * elapsed) / over : left;
}
