import { describe, expect, it } from 'vitest';

import { measureLoop } from '../../../lib/measure/machine/plain-loops.js';
import { interpolateRate, SizedLimit } from '../../../lib/measure/machine/sized-limit.js';
import type { Peers } from '../../../lib/measure/machine/shared-limit.js';

const alone: Peers = { rank: 0, gather: (values) => Promise.resolve([values]) };
const kibibyte = 2 ** 10;

describe('the rate between measured sizes', () => {
  const rates = [
    { bytes: 1000, bytesPerSecond: 16 },
    { bytes: 100_000, bytesPerSecond: 4 },
  ];

  it('lies on the straight line of the logarithms', () => {
    expect(interpolateRate(rates, 10_000)).toBeCloseTo(8);
    expect(interpolateRate(rates, 100_000)).toBe(4);
  });

  it('goes on as it was before the first and beyond the last', () => {
    expect(interpolateRate(rates, 1)).toBe(16);
    expect(interpolateRate(rates, 1e9)).toBe(4);
    expect(interpolateRate([], 1)).toBe(0);
  });
});

describe('a limit by size', () => {
  it('measures a few sizes from the smallest to the largest, each access by itself', async () => {
    const asked: string[] = [];
    const limit = new SizedLimit(
      alone,
      { measures: true, measuring: 1 },
      2 ** 30,
      (bytes, access) => {
        asked.push(`${access} ${bytes / kibibyte}`);
        return Promise.resolve(bytes);
      },
    );
    await limit.prepare([0, 16 * kibibyte, 300 * kibibyte], 'rewrite');
    expect(asked).toEqual(['rewrite 16', 'rewrite 64', 'rewrite 256', 'rewrite 300']);
    expect(limit.at(64 * kibibyte, 'rewrite')).toBe(64 * kibibyte);
    expect(limit.at(64 * kibibyte, 'copy')).toBe(0);
  });

  it('keeps the best of a size that is measured again', async () => {
    const found = [5, 9, 7];
    const limit = new SizedLimit(alone, { measures: true, measuring: 1 }, 2 ** 30, () =>
      Promise.resolve(found.shift() ?? 0),
    );
    for (const best of [5, 9, 9]) {
      await limit.refine(1e6, 'copy');
      expect(limit.at(1e6, 'copy')).toBe(best);
    }
  });

  it('takes what is beyond all caches as one size', async () => {
    const asked: number[] = [];
    const limit = new SizedLimit(alone, { measures: true, measuring: 1 }, 1e6, (bytes) => {
      asked.push(bytes);
      return Promise.resolve(1);
    });
    await limit.prepare([5e6, 7e6], 'copy');
    expect(asked).toEqual([1e6]);
    expect(limit.within(7e6)).toBe(1e6);
  });

  it('is what the processes that measure move together, each its part', async () => {
    const asked: number[] = [];
    const peers: Peers = { rank: 0, gather: ([own = 0]) => Promise.resolve([[own], [0], [30]]) };
    const limit = new SizedLimit(peers, { measures: true, measuring: 2 }, 2 ** 30, (bytes) => {
      asked.push(bytes);
      return Promise.resolve(20);
    });
    await limit.refine(1e6, 'sum');
    expect(asked).toEqual([5e5]);
    expect(limit.at(1e6, 'sum')).toBe(50);
  });

  it('is left to others by a process that shares their cores', async () => {
    const limit = new SizedLimit(alone, { measures: false, measuring: 1 }, 2 ** 30, () =>
      Promise.reject(new Error('must not measure')),
    );
    await limit.refine(1e6, 'sum');
    expect(limit.at(1e6, 'sum')).toBe(0);
  });

  it.each(['copy', 'sum', 'rewrite'] as const)('comes from plain loops: %s', async (access) => {
    expect(await measureLoop(64 * kibibyte, access)).toBeGreaterThan(0);
  });
});
