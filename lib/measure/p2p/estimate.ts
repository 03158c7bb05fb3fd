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
 * So much of the whole counts as done in the guessed time: a short first part also has what starting costs, and tells
 * little of the rest.
 */
const trust = 0.25;

/**
 * Remaining seconds.
 *
 * @param guessed estimates of all parts, in order
 * @param done number of finished parts
 * @param elapsed seconds since the start
 */
export function secondsLeft(guessed: readonly number[], done: number, elapsed: number): number {
  const sum = (parts: readonly number[]): number => parts.reduce((all, one) => all + one, 0);
  const all = sum(guessed);
  const over = sum(guessed.slice(0, done));
  const known = trust * all;
  return over === 0 ? all : ((all - over) * (elapsed + known)) / (over + known);
}
