// A scaling curve from measured throughputs alone, without facts about links.
import { argumentError } from '../errors.js';
import { aPositive, having, listOf } from '../checks.js';
import { nonNegativeLeastSquares } from './least-squares.js';

/** A measured step with its workers and hosts. */
export interface MeasuredStep {
  /** Number of workers. */
  readonly workers: number;
  /** Number of hosts. */
  readonly hosts: number;
  /** Seconds of one step. */
  readonly stepSeconds: number;
}

export interface PredictedPoint {
  /** Seconds of one step. */
  readonly stepSeconds: number;
  /** The faster of ring and tree between hosts, which the points do not distinguish. */
  readonly lowSeconds: number;
  /** The slower of the two. */
  readonly highSeconds: number;
  /**
   * The largest relative distance of a measured step from the better-fitting curve. 0 with as many terms as points.
   * Above 0.03 the points do not match these shapes, and the forecast says little.
   */
  readonly misfit: number;
}

/** Steps are measured, or read off charts, to 2 %: a larger error means that the curve does not fit. */
export const mostMisfit = 0.03;

/**
 * Growth of a host link's bytes with the number of hosts, relative to two: a ring moves 2(N-1)/N of the gradients, a
 * tree all of them from the second host on.
 */
const growth = {
  ring: (hosts: number): number => (2 * (hosts - 1)) / hosts,
  tree: (hosts: number): number => (hosts > 1 ? 1 : 0),
} as const;

/**
 * There must be more points than terms, so the last terms are dropped: latency first, because it needs the most points.
 */
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
 * Fits `step = a + b * growth(hosts) + c * (workers - 1)` with nonnegative coefficients (compute, bytes between hosts,
 * latency) and extrapolates to another number of workers.
 *
 * @param measured steps of at least two numbers of workers
 * @throws TypeError with fewer
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
