// Made-up runs whose samples scatter as those of a machine do, for the tests of what compares runs.
import { collectiveVolume } from '../../lib/results/bandwidth.js';
import { completeCase, exactCheck } from '../../lib/results/case.js';
import type { CaseResult, Report } from '../../lib/results/result.js';
import { report } from './reports.js';

/** Uniform numbers from [0, 1), the same for the same seed. */
export function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export interface MadeRun {
  readonly seed: number;
  /** Of all times. */
  readonly factor?: number;
  /** Largest relative excess of a sample over the quickest. */
  readonly scatter?: number;
  readonly samples?: number;
  readonly sizes?: readonly number[];
}

/** One all-reduce case of a size. */
export function madeCase(count: number, samplesSeconds: readonly number[]): CaseResult {
  const call = { countPerRank: count, elementBytes: 4, ranks: 2, placement: 'in-place' } as const;
  return completeCase({
    name: 'all_reduce',
    parameters: { bytes: count * 4, count, dtype: 'float32', op: 'sum', root: null, ranks: 2 },
    samplesSeconds,
    volume: collectiveVolume('all_reduce', call),
    copyBytesPerSecond: 20e9,
    check: exactCheck(0),
  });
}

/** A sweep: each size takes 5 us and 0.1 ns a byte. */
export function madeRun({
  seed,
  factor = 1,
  scatter = 0.05,
  samples = 20,
  sizes = [1024, 65536, 1 << 20],
}: MadeRun): Report {
  const random = uniform(seed);
  const cases = sizes.map((count) => {
    const quickest = (5e-6 + count * 4e-10) * factor;
    return madeCase(
      count,
      // Squared: most samples near the quickest, few far above, as interference makes them.
      Array.from({ length: samples }, () => quickest * (1 + scatter * random() ** 2)),
    );
  });
  return report('collectives', cases);
}
