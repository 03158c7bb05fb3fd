// A scaling curve from measured throughputs alone, where nothing is known of links.
import { argumentError } from '../errors.js';
import { aPositive, having, listOf } from '../checks.js';
import { nonNegativeLeastSquares } from './least-squares.js';

/** A measured step: of so many workers on so many hosts. */
export interface MeasuredStep {
  /** That took part. */
  readonly workers: number;
  /** On which they were. */
  readonly hosts: number;
  /** Of one step. */
  readonly stepSeconds: number;
}

export interface PredictedPoint {
  /** Of one step. */
  readonly stepSeconds: number;
  /** By a ring between hosts, or by a tree: the points do not tell which. */
  readonly lowSeconds: number;
  /** The most that it may take. */
  readonly highSeconds: number;
  /**
   * How far a measured step lies from the curve at most, as a share of it, by the shape that fits better. 0 where there are
   * as many terms as points. Above 0.03 the points lie on no curve of these shapes, and the forecast says little.
   */
  readonly misfit: number;
}

/** Steps are measured, or read off charts, to 2 %: a curve that misses one by more is not theirs. */
export const mostMisfit = 0.03;

/**
 * How the bytes of a host's link grow with the hosts, against two hosts: a ring moves 2(N-1)/N of the gradients, a tree
 * all of them from the second host on.
 */
const growth = {
  ring: (hosts: number): number => (2 * (hosts - 1)) / hosts,
  tree: (hosts: number): number => (hosts > 1 ? 1 : 0),
} as const;

/** Without more points than terms the last terms are left out: latency first, since it needs the most points to be seen. */
function termsFor(points: number): number {
  return Math.min(points, 3);
}

type Growth = (hosts: number) => number;

function rowOf({ workers, hosts }: Omit<MeasuredStep, 'stepSeconds'>, grows: Growth): number[] {
  return [1, grows(hosts), workers - 1];
}

const counts = { workers: aPositive, hosts: aPositive };
const placeKind = having(counts);
const stepsKind = listOf(having({ ...counts, stepSeconds: aPositive }));

/**
 * Fits `step = a + b * growth(hosts) + c * (workers - 1)` with coefficients that are not negative (compute, bytes
 * between hosts, latency) and goes on to another number of workers.
 *
 * @param measured steps of at least two numbers of workers
 * @throws TypeError when fewer were measured
 */
export function predictCurve(
  measured: readonly MeasuredStep[],
  target: Omit<MeasuredStep, 'stepSeconds'>,
): PredictedPoint {
  stepsKind(measured, 'measured');
  placeKind(target, 'target');
  if (new Set(measured.map(({ workers }) => workers)).size < 2) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'measured', 'two numbers of workers', measured);
  }
  const terms = termsFor(measured.length);
  const fitted = (grows: Growth): { readonly seconds: number; readonly misfit: number } => {
    const { coefficients } = nonNegativeLeastSquares(
      measured.map((one) => rowOf(one, grows).slice(0, terms)),
      measured.map(({ stepSeconds }) => stepSeconds),
      measured.map(({ stepSeconds }) => 1 / stepSeconds ** 2),
    );
    const secondsAt = (place: typeof target): number => {
      const row = rowOf(place, grows);
      return coefficients.reduce((sum, coefficient, k) => sum + coefficient * row[k]!, 0);
    };
    const misses = measured.map((one) => Math.abs(secondsAt(one) / one.stepSeconds - 1));
    return { seconds: secondsAt(target), misfit: Math.max(...misses) };
  };
  const [ring, tree] = [fitted(growth.ring), fitted(growth.tree)];
  return {
    stepSeconds: (ring.seconds + tree.seconds) / 2,
    lowSeconds: Math.min(ring.seconds, tree.seconds),
    highSeconds: Math.max(ring.seconds, tree.seconds),
    misfit: Math.min(ring.misfit, tree.misfit),
  };
}
