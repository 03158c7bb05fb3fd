import { describe, expect, it } from 'vitest';

import {
  CoresLimit,
  rateInPieces,
  type TimeBetweenCores,
} from '../../../lib/measure/machine/cores-limit.js';
import type { Peers } from '../../../lib/measure/machine/shared-limit.js';
import { collectiveCrossing } from '../../../lib/results/crossing.js';

const alone: Peers = { rank: 0, gather: (values) => Promise.resolve([values]) };

/** Of these rates in bytes a second, whatever the size. */
const timing =
  (put: number, get: number, faster = 1): TimeBetweenCores =>
  ({ bytes }) => {
    const seconds = (by: number) =>
      Float64Array.of(
        bytes / put / by,
        bytes / get / by,
        bytes / put / by / faster,
        bytes / get / by / faster,
      );
    return Promise.resolve({ bytes, plain: seconds(1), streaming: seconds(0.5), wrong: 0 });
  };

async function limitOf(time: TimeBetweenCores, ranks = 2, cores = ranks, peers = alone) {
  const limit = new CoresLimit(peers, ranks, cores, time);
  await limit.measure();
  return limit;
}
const seconds = (limit: CoresLimit, name: 'all_reduce' | 'broadcast', ranks: number) => {
  const found = limit.of(collectiveCrossing(name, 1e6, ranks));
  return found === undefined ? undefined : found.bytes / found.bytesPerSecond;
};

describe('the rate of a size in pieces', () => {
  const rates = [
    { bytes: 1e3, bytesPerSecond: 1 },
    { bytes: 1e5, bytesPerSecond: 16 },
    { bytes: 1e7, bytesPerSecond: 4 },
  ];

  it('rises on the straight line of the logarithms, and never falls', () => {
    expect(rateInPieces(rates, 1)).toBe(1);
    expect(rateInPieces(rates, 1e4)).toBeCloseTo(4);
    for (const bytes of [1e5, 1e6, 1e7, 1e9]) expect(rateInPieces(rates, bytes)).toBe(16);
    let last = 0;
    for (let bytes = 64; bytes < 1e8; bytes *= 1.7) {
      const now = rateInPieces(rates, bytes);
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });
});

describe('the limit between cores', () => {
  it('is what a rank writes and what it reads, one after the other, in the better style', async () => {
    const limit = await limitOf(timing(2e9, 4e9));
    expect(seconds(limit, 'all_reduce', 2)).toBeCloseTo(1e6 / 2e9 + 1e6 / 4e9, 9);
    expect(limit.of(collectiveCrossing('all_reduce', 1e6, 2))?.bytes).toBe(2e6);
  });

  it('is that of the busiest rank, which may be at work alone where ranks differ', async () => {
    expect(seconds(await limitOf(timing(2e9, 4e9)), 'broadcast', 2)).toBeCloseTo(1e6 / 2e9, 9);
    const limit = await limitOf(timing(2e9, 4e9, 2));
    expect(seconds(limit, 'broadcast', 2)).toBeCloseTo(1e6 / 4e9, 9);
    expect(seconds(limit, 'all_reduce', 2)).toBeCloseTo(1e6 / 2e9 + 1e6 / 4e9, 9);
  });

  it('is the work of all where ranks share cores', async () => {
    const own = (ranks: number, cores: number) =>
      limitOf(timing(2e9, 4e9), ranks, cores).then((limit) => seconds(limit, 'all_reduce', ranks)!);
    expect((await own(8, 2)) / (await own(8, 8))).toBeCloseTo(4);
  });

  it('takes the best of all ranks, of those that took part', async () => {
    const peers: Peers = {
      rank: 0,
      gather: ([wrong = 0, ...own]) =>
        Promise.resolve([
          [wrong, ...own],
          [0, ...own.map((one) => one / 2)],
          [0, ...own.map(() => 0)],
        ]),
    };
    const limit = await limitOf(timing(2e9, 4e9), 3, 3, peers);
    const expected = 1e6 / 4e9 + (4 / 3) * (1e6 / 8e9);
    expect(seconds(limit, 'all_reduce', 3)).toBeCloseTo(expected, 9);
  });

  it('keeps the best of what is measured again', async () => {
    let speed = 1e9;
    const limit = await limitOf((options) => timing(speed, speed)(options));
    const before = seconds(limit, 'all_reduce', 2)!;
    speed = 2e9;
    await limit.measure();
    expect(seconds(limit, 'all_reduce', 2)).toBeCloseTo(before / 2, 9);
    speed = 0.5e9;
    await limit.measure();
    expect(seconds(limit, 'all_reduce', 2)).toBeCloseTo(before / 2, 9);
  });

  it('asks for ranks that there are', async () => {
    const asked = new Set<number>();
    const time: TimeBetweenCores = (options) => {
      asked.add(options.distance);
      return timing(1e9, 1e9)(options);
    };
    await limitOf(time, 5);
    expect([...asked]).toEqual([1, 2, 4]);
  });

  it('is unknown where ranks do not see each other, and where nothing passes', async () => {
    const blind: TimeBetweenCores = ({ bytes }) =>
      Promise.resolve({
        bytes,
        plain: new Float64Array(4),
        streaming: new Float64Array(4),
        wrong: 0,
      });
    expect(seconds(await limitOf(blind), 'all_reduce', 2)).toBeUndefined();
    expect(seconds(await limitOf(timing(1e9, 1e9)), 'all_reduce', 1)).toBeUndefined();
  });

  it('is refused where a core read other bytes', async () => {
    const wrong: TimeBetweenCores = async (options) => ({
      ...(await timing(1, 1)(options)),
      wrong: 1,
    });
    await expect(limitOf(wrong)).rejects.toMatchObject({ code: 'ERR_INTERNAL' });
  });
});
