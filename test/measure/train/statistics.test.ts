import { describe, expect, it } from 'vitest';

import { runStatistics } from '../../../lib/measure/train/statistics.js';

describe('runStatistics', () => {
  // Two ranks, three iterations of 60 samples.
  const times = [
    [1, 2, 3],
    [2, 2, 1],
  ];
  const { perRank, rank0, bluefog, horovod } = runStatistics(times, 60);

  it('has the rates of every rank', () => {
    expect(perRank).toEqual([
      [60, 30, 20],
      [30, 30, 60],
    ]);
  });

  it('sums the rates of an iteration, as BlueFog does', () => {
    // 90, 60, 80: mean 230/3, population variance 155.55…
    expect(bluefog.mean).toBeCloseTo(230 / 3, 10);
    expect(bluefog.halfWidth).toBeCloseTo(1.96 * Math.sqrt(1400 / 9), 10);
  });

  it('takes rank 0 times the ranks, as Horovod does', () => {
    // 60, 30, 20: mean 110/3, population variance 288.88…
    expect(rank0.mean).toBeCloseTo(110 / 3, 10);
    expect(horovod.mean).toBeCloseTo(220 / 3, 10);
    expect(horovod.halfWidth).toBeCloseTo(2 * 1.96 * Math.sqrt(2600 / 9), 10);
    expect(horovod.halfWidth).toBeCloseTo(2 * rank0.halfWidth, 10);
  });

  it('has no spread with one iteration', () => {
    expect(runStatistics([[0.5]], 4)).toMatchObject({
      rank0: { mean: 8, halfWidth: 0 },
      bluefog: { mean: 8, halfWidth: 0 },
      horovod: { mean: 8, halfWidth: 0 },
    });
  });
});
