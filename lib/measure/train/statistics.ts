// BlueFog's and Horovod's figures of a run, which differ and must not be compared with each other.
import { mean, standardDeviation } from 'simple-statistics';

/** A mean and half its interval: 1.96 population standard deviations. */
export interface Spread {
  readonly mean: number;
  readonly halfWidth: number;
}

export interface RunStatistics {
  /** Samples per second of each rank in each iteration. */
  readonly perRank: readonly (readonly number[])[];
  /** Per rank. */
  readonly ranks: readonly Spread[];
  /** Of rank 0. */
  readonly rank0: Spread;
  /** BlueFog: mean and deviation of the ranks' summed figures per iteration. */
  readonly bluefog: Spread;
  /** Horovod: rank 0's mean and interval, both times the number of ranks. */
  readonly horovod: Spread;
}

function spread(values: readonly number[]): Spread {
  const list = [...values];
  return { mean: mean(list), halfWidth: 1.96 * standardDeviation(list) };
}

/**
 * @param iterationSeconds per rank, with the same number of iterations, at least one
 * @param samplesPerIteration per rank
 */
export function runStatistics(
  iterationSeconds: readonly (readonly number[])[],
  samplesPerIteration: number,
): RunStatistics {
  const perRank = iterationSeconds.map((times) =>
    times.map((seconds) => samplesPerIteration / seconds),
  );
  const [first = []] = perRank;
  const rank0 = spread(first);
  const sums = first.map((_, iteration) =>
    perRank.reduce((sum, rates) => sum + (rates[iteration] ?? 0), 0),
  );
  const count = perRank.length;
  return {
    perRank,
    ranks: perRank.map(spread),
    rank0,
    bluefog: spread(sums),
    horovod: { mean: count * rank0.mean, halfWidth: count * rank0.halfWidth },
  };
}
