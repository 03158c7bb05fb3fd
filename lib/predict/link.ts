// The time of a message on a link: interpolated between measured sizes, and by the latency and rate of a regime beyond
// them.
import { median } from 'simple-statistics';

import { argumentError } from '../errors.js';
import { anAmount, aNumber, aPositive, having, listOf, orNull, someOf } from '../checks.js';
import { nonNegativeLeastSquares } from './least-squares.js';

/** One measured size. */
export interface Point {
  /** Size of a message. */
  readonly bytes: number;
  /** Its time. */
  readonly seconds: number;
}

/** `seconds = alphaSeconds + bytes * betaSecondsPerByte`, approximately, for messages of this size. */
export interface Regime {
  /** Smallest message in bytes. */
  readonly fromBytes: number;
  /** Largest message in bytes; unlimited for the last regime. */
  readonly toBytes: number;
  /** Time of an empty message. */
  readonly alphaSeconds: number;
  /** Time per byte. */
  readonly betaSecondsPerByte: number;
}

/** Where a link was measured. */
export interface LinkOrigin {
  /** `2 ranks in one memory (AMD EPYC, 2 cores)`. */
  readonly text: string;
  /** Whether messages crossed a network. */
  readonly network: boolean;
  /** For host memory: the number of cores that used it. */
  readonly cores?: number;
  /** For a host's GPUs: how many of them were measured. */
  readonly gpus?: number;
}

/** The times of messages between two workers. */
export interface Link {
  /** Absent if unknown. */
  readonly origin?: LinkOrigin;
  /** In ascending order without gaps, starting at 0. */
  readonly regimes: readonly Regime[];
  /** Measured sizes in ascending order, without repeats; empty if only latency and rate are known. */
  readonly points: readonly Point[];
  /** Median relative error on held-out sizes; null if too few were measured. */
  readonly unseenError: number | null;
}

const mostRegimes = 5;
/** A regime has a start, a latency and a rate. */
export const fewestPoints = 3;

interface Piece {
  readonly alpha: number;
  readonly beta: number;
  readonly squares: number;
}

/** Minimises relative errors; otherwise the largest sizes would dominate. */
function fitPiece(points: readonly Point[]): Piece {
  const { coefficients, squares } = nonNegativeLeastSquares(
    points.map(({ bytes }) => [1, bytes]),
    points.map(({ seconds }) => seconds),
    points.map(({ seconds }) => 1 / (seconds * seconds)),
  );
  return { alpha: coefficients[0]!, beta: coefficients[1]!, squares };
}

interface Split {
  readonly squares: number;
  readonly starts: readonly number[];
}

/** The best split into 1, 2, ... pieces, by dynamic programming over the start of the last piece. */
function bestSplits(points: readonly Point[]): Split[] {
  const n = points.length;
  const squares = points.map((_, from) =>
    points.map((__, to) =>
      to - from + 1 < fewestPoints ? Infinity : fitPiece(points.slice(from, to + 1)).squares,
    ),
  );
  let layer: (Split | undefined)[] = points.map((_, end) => ({
    squares: squares[0]![end]!,
    starts: [0],
  }));
  const found: Split[] = [];
  for (let pieces = 1; pieces <= mostRegimes; pieces += 1) {
    const whole = layer[n - 1];
    if (whole !== undefined && whole.squares < Infinity) found.push(whole);
    const before = layer;
    layer = points.map((_, end) => {
      let best: Split | undefined;
      for (let start = fewestPoints; start <= end; start += 1) {
        const head = before[start - 1];
        const total = (head?.squares ?? Infinity) + squares[start]![end]!;
        if (head !== undefined && total < (best?.squares ?? Infinity)) {
          best = { squares: total, starts: [...head.starts, start] };
        }
      }
      return best;
    });
  }
  return found;
}

/** The Bayesian information criterion: a further regime must justify its three parameters. */
function criterion({ squares, starts }: Split, points: number): number {
  // No clock is more accurate than a thousandth.
  const perPoint = Math.max(squares / points, 1e-6);
  return points * Math.log(perPoint) + 3 * starts.length * Math.log(points);
}

function fitRegimes(points: readonly Point[]): Regime[] {
  const splits = bestSplits(points);
  const best = splits.reduce((a, b) =>
    criterion(b, points.length) < criterion(a, points.length) ? b : a,
  );
  return best.starts.map((start, k) => {
    const end = best.starts[k + 1] ?? points.length;
    const { alpha, beta } = fitPiece(points.slice(start, end));
    const boundary = (index: number): number =>
      Math.sqrt(points[index - 1]!.bytes * points[index]!.bytes);
    return {
      fromBytes: start === 0 ? 0 : boundary(start),
      toBytes: end === points.length ? Infinity : boundary(end),
      alphaSeconds: alpha,
      betaSecondsPerByte: beta,
    };
  });
}

const pointsKind = listOf(having({ bytes: aNumber, seconds: aNumber }));
const regimeKind = having({
  toBytes: aNumber,
  alphaSeconds: aNumber,
  betaSecondsPerByte: aNumber,
});

export const linkKind = having({
  regimes: someOf(regimeKind),
  points: pointsKind,
  unseenError: orNull(aNumber),
});

/** Each size once, with its median time. */
function oneEach(points: readonly Point[]): Point[] {
  pointsKind(points, 'points');
  const bySize = new Map<number, number[]>();
  for (const { bytes, seconds } of points) {
    if (bytes > 0 && seconds > 0) bySize.set(bytes, [...(bySize.get(bytes) ?? []), seconds]);
  }
  if (bySize.size < fewestPoints) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'points',
      `at least ${String(fewestPoints)} sizes with times above zero`,
      { text: String(bySize.size) },
    );
  }
  return [...bySize]
    .map(([bytes, times]) => ({ bytes, seconds: median(times) }))
    .sort((a, b) => a.bytes - b.bytes);
}

function timeByRegime(regimes: readonly Regime[], bytes: number): number {
  const regime = regimes.find(({ toBytes }) => bytes < toBytes) ?? regimes.at(-1)!;
  return regime.alphaSeconds + bytes * regime.betaSecondsPerByte;
}

/** Log-linear between two sizes: cache effects are too gradual for a few straight pieces. */
function between(low: Point, high: Point, bytes: number): number {
  const part = Math.log(bytes / low.bytes) / Math.log(high.bytes / low.bytes);
  return low.seconds * (high.seconds / low.seconds) ** part;
}

function timeOf({ points, regimes }: Pick<Link, 'points' | 'regimes'>, bytes: number): number {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return timeByRegime(regimes, bytes);
  if (bytes <= first.bytes) return first.seconds;
  const above = points.findIndex((point) => point.bytes >= bytes);
  if (above > 0) return between(points[above - 1]!, points[above]!, bytes);
  // Beyond the measured sizes: from the last point at the rate of the last regime.
  const beta = regimes.at(-1)!.betaSecondsPerByte;
  return last.seconds + (bytes - last.bytes) * (beta > 0 ? beta : last.seconds / last.bytes);
}

/** The error of a fit on a held-out size. */
export interface HeldOut {
  /** The held-out size. */
  readonly bytes: number;
  /** The measured time. */
  readonly seconds: number;
  /** Predicted from the other sizes. */
  readonly predictedSeconds: number;
  /** predicted / measured - 1. */
  readonly error: number;
}

/** Holds out every other size and predicts it from the rest; empty with fewer than five sizes. */
export function predictUnseen(points: readonly Point[]): HeldOut[] {
  const all = oneEach(points);
  const seen = all.filter((_, index) => index % 2 === 0);
  if (seen.length < fewestPoints) return [];
  const link = { points: seen, regimes: fitRegimes(seen) };
  return all
    .filter((_, index) => index % 2 === 1)
    .map(({ bytes, seconds }) => {
      const predictedSeconds = timeOf(link, bytes);
      return { bytes, seconds, predictedSeconds, error: predictedSeconds / seconds - 1 };
    });
}

/** The median absolute error; null without any. */
export function medianError(held: readonly HeldOut[]): number | null {
  return held.length === 0 ? null : median(held.map(({ error }) => Math.abs(error)));
}

/**
 * Fits a link to measured times of messages.
 *
 * @throws TypeError with fewer than three sizes
 */
export function fitLink(measured: readonly Point[]): Link {
  const points = oneEach(measured);
  return {
    regimes: fitRegimes(points),
    points,
    unseenError: medianError(predictUnseen(points)),
  };
}

/** A link with only a latency and a rate. */
export function plainLink(alphaSeconds: number, bytesPerSecond: number): Link {
  anAmount(alphaSeconds, 'alphaSeconds');
  aPositive(bytesPerSecond, 'bytesPerSecond');
  const betaSecondsPerByte = 1 / bytesPerSecond;
  return {
    regimes: [{ fromBytes: 0, toBytes: Infinity, alphaSeconds, betaSecondsPerByte }],
    points: [],
    unseenError: null,
  };
}

/** Seconds of one message. */
export function messageSeconds(link: Link, bytes: number): number {
  return timeOf(link, bytes);
}

/** Seconds of the smallest message. */
export function latencySeconds(link: Link): number {
  return messageSeconds(link, 0);
}

/** The time beyond the latency: of a message that is split into many in a row. */
export function streamSeconds(link: Link, bytes: number): number {
  return Math.max(messageSeconds(link, bytes) - latencySeconds(link), 0);
}
