// How long a run will take: guessed from what its links are said to do, and corrected by what was done took.

/** Seconds to allocate the arrays of a figure, page-locked ones among them, and to compare them. */
const bytesPerSecondBeside = 4e9;

/** Of a link of which nothing is known: PCIe generation 3 x16. */
const unknownRate = 12e9;

/** What one figure moves. */
export interface FigureWork {
  /** Of one copy. */
  readonly bytes: number;
  /** Copies of all samples and of the warm-up, one after the other. */
  readonly copies: number;
  /** Copies side by side. */
  readonly lanes: number;
  /** Of the slowest link; undefined where nobody says. */
  readonly bytesPerSecond: number | undefined;
}

/** A first guess of the seconds that one figure takes. */
export function figureSeconds({ bytes, copies, lanes, bytesPerSecond }: FigureWork): number {
  return (
    (bytes * copies) / (bytesPerSecond ?? unknownRate) + (bytes * lanes) / bytesPerSecondBeside
  );
}

/**
 * Seconds that are left.
 *
 * @param guessed of all parts, in their order
 * @param done so many of them are over
 * @param elapsed since the first began
 */
export function secondsLeft(guessed: readonly number[], done: number, elapsed: number): number {
  const sum = (parts: readonly number[]): number => parts.reduce((all, one) => all + one, 0);
  const over = sum(guessed.slice(0, done));
  const left = sum(guessed.slice(done));
  return over > 0 ? (left * elapsed) / over : left;
}
