// Gradients reduced in buckets by ranks of this process, in every mode.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { GradientReducer, reduceModes } from '../../lib/train/buckets/index.js';
import { monotonicSeconds } from '../../lib/time.js';
import type { ReducerOptions } from '../../lib/train/buckets/index.js';

const specs = [
  { name: 'kernel', shape: [3, 5] },
  { name: 'bias', shape: [5] },
  { name: 'scalar', shape: [] },
  { name: 'wide', shape: [2, 1000] },
];
const lengths = [15, 5, 1, 2000];
const everyGradient = [0, 1, 2, 3];

/** Small integers that differ by rank, gradient and place: sums are exact. */
function values(rank: number, gradient: number): Float32Array {
  return Float32Array.from(
    { length: lengths[gradient]! },
    (_, i) => (rank + 1) * 100 + gradient * 10 + (i % 7),
  );
}

/** The mean over ranks of what `of` gives. */
function mean(size: number, of: (rank: number) => Float32Array): number[] {
  const all = Array.from({ length: size }, (_, rank) => of(rank));
  return [...all[0]!.keys()].map((i) =>
    Math.fround(all.reduce((sum, one) => sum + one[i]!, 0) / size),
  );
}

it.each(['finish', 'finishSync'] as const)(
  'of sync, %s fills no bucket after one that failed',
  async (how) => {
    await using pair = Communicator.local(2);
    const [alone] = (await pair.openRanks()) as [Communicator];
    const reducer = new GradientReducer(alone, specs, {
      mode: 'sync',
      bucketCapBytes: 64,
      timeoutMs: 50,
    });
    reducer.begin();
    for (const index of everyGradient) reducer.add(index, values(0, index));
    const finished = Promise.resolve().then(() => reducer[how]());
    await expect(finished).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
    // The buckets are [3] and [2, 1, 0].
    const filled = everyGradient.map((index) => reducer.gradient(index).some((x) => x !== 0));
    expect(filled).toEqual([false, false, false, true]);
  },
);

describe.each([1, 2, 3])('on %d ranks', (size) => {
  let all: LocalGroup;
  let ranks: readonly Communicator[];
  beforeAll(async () => {
    all = Communicator.local(size);
    ranks = await all.openRanks();
  });
  afterAll(() => all.close());

  function reducers(options: ReducerOptions): GradientReducer[] {
    return ranks.map((rank) => new GradientReducer(rank, specs, options));
  }

  /** One pass on all ranks; what `added` names comes in that order. */
  async function pass(
    them: readonly GradientReducer[],
    added: (rank: number) => readonly (readonly [number, Float32Array])[],
  ): Promise<void> {
    them.forEach((reducer, rank) => {
      reducer.begin();
      for (const [index, gradient] of added(rank)) reducer.add(index, gradient);
    });
    await Promise.all(them.map((reducer) => reducer.finish()));
  }

  const reversed = (rank: number) =>
    [3, 2, 1, 0].map((index) => [index, values(rank, index)] as const);

  it.each(reduceModes)('%s gives the mean of all, pass after pass', async (mode) => {
    // Buckets of 64 bytes: wide, then scalar, bias and kernel until each is full.
    const them = reducers({ mode, bucketCapBytes: 64 });
    expect(them[0]!.plan.map(({ gradients }) => gradients)).toEqual([[3], [2, 1, 0]]);
    for (let turn = 0; turn < 3; turn += 1) {
      await pass(them, reversed);
      for (const reducer of them) {
        for (const index of everyGradient) {
          const expected = mean(size, (rank) => values(rank, index));
          expect([...reducer.gradient(index)], `${mode} ${index}`).toEqual(expected);
        }
      }
    }
  });

  it.each(reduceModes)('%s takes the order of the first pass on rank 0', async (mode) => {
    const them = reducers({ mode, bucketCapBytes: 64 });
    const order = (rank: number): readonly number[] => (rank === 0 ? [1, 0, 3, 2] : [0, 1, 2, 3]);
    const added = (rank: number) =>
      order(rank).map((index) => [index, values(rank, index)] as const);
    for (let turn = 0; turn < 2; turn += 1) {
      await pass(them, added);
      for (const reducer of them) {
        expect(reducer.plan.map(({ gradients }) => gradients)).toEqual([[1, 0], [3], [2]]);
        for (const index of everyGradient) {
          expect([...reducer.gradient(index)]).toEqual(mean(size, (rank) => values(rank, index)));
        }
      }
    }
  });
});

it.each(reduceModes)('%s begins with its buckets when it should', async (mode) => {
  await using all = Communicator.local(2);
  const ranks = await all.openRanks();
  const them = ranks.map(
    (rank) => new GradientReducer(rank, specs, { mode, bucketCapBytes: 64, rebuild: false }),
  );
  for (const [rank, reducer] of them.entries()) {
    reducer.begin();
    for (const index of everyGradient) reducer.add(index, values(rank, index));
  }
  const computed = monotonicSeconds();
  const times = await Promise.all(them.map((reducer) => reducer.finish()));
  for (const [first, second] of times) {
    expect(first!.bucket).toBe(0);
    expect(first!.endSeconds).toBeLessThanOrEqual(second!.startSeconds);
    // While gradients are still computed, or after that.
    expect(second!.readySeconds < computed).toBe(mode === 'overlap');
    // One by one: the next is not even filled before.
    if (mode === 'sync') expect(second!.readySeconds).toBeGreaterThanOrEqual(first!.endSeconds);
    else expect(second!.readySeconds).toBeLessThanOrEqual(second!.startSeconds);
  }
});

it('a pass ends with the error of a collective, on every rank that is in it', async () => {
  await using all = Communicator.local(2);
  const ranks = await all.openRanks();
  const them = ranks.map((rank) => new GradientReducer(rank, specs, { bucketCapBytes: 64 }));
  for (const reducer of them) reducer.begin();
  them[0]!.add(3, values(0, 3));
  const first = them[0]!.finish();
  ranks[1]!.abort('broken batch');
  await expect(first).rejects.toMatchObject({ code: 'ERR_ABORTED' });
  await expect(them[1]!.finish()).rejects.toThrow(/broken batch/);
});

describe('misuse', () => {
  const all = Communicator.local(1);
  let one: Communicator | undefined;
  let reducer: GradientReducer;
  beforeAll(async () => {
    [one] = await all.openRanks();
    reducer = new GradientReducer(one!, specs);
  });

  it('is told, and leaves the reducer usable', async () => {
    expect(() => reducer.add(0, new Float32Array(15))).toThrow(/add\(\) without begin\(\)/);
    await expect(reducer.finish()).rejects.toThrow(/finish\(\) without begin\(\)/);
    expect(() => reducer.begin({ uses: [1] })).toThrow(/\b4 numbers.*\buses\b/);
    reducer.begin();
    expect(() => reducer.begin()).toThrow(/begin\(\) .*\bopen\b/);
    expect(() => reducer.add(4, new Float32Array(1))).toThrow(/below 4 .*index, got 4/);
    expect(() => reducer.add(0, new Float32Array(14))).toThrow(/a Float32Array of 15 for kernel/);
    reducer.add(0, values(0, 0));
    expect(() => reducer.add(0, values(0, 0))).toThrow(/add\(\) .*kernel more\b/);
    const finished = reducer.finish();
    expect(() => reducer.begin()).toThrow(/begin\(\) .*\bopen\b/);
    await finished;
    expect([...reducer.gradient(0)]).toEqual([...values(0, 0)]);
    reducer.begin();
    reducer.add(0, values(1, 0));
    expect(reducer.finishSync().map(({ bucket }) => bucket)).toEqual([0]);
    expect([...reducer.gradient(0)]).toEqual([...values(1, 0)]);
  });

  it('of options and communicators is told', async () => {
    await using two = Communicator.local(2);
    expect(() => new GradientReducer(two as never, specs)).toThrow(/openRanks\(\)/);
    const wrong = (options: object) => () => new GradientReducer(one!, specs, options);
    expect(wrong({ mode: 'later' })).toThrow(/\boverlap, async, .*mode, got 'later'/);
    expect(wrong({ modes: 'sync' })).toThrow(/'modes' .*mean mode\?/);
    expect(wrong({ hook: { type: '2bit', rank: 1 } })).toThrow(/hook '2bit'.*'rank'/);
    expect(() => reducer.begin({ use: [1] } as object)).toThrow(/'use' .*mean uses\?/);
    expect(wrong({ op: 'max' })).toThrow(/avg, .*op, got 'max'/);
    expect(wrong({ hook: '3bit' })).toThrow(/float16, .*powersgd .*hook, got '3bit'/);
    expect(wrong({ hook: { type: 'powersgd', startPass: 1 } })).toThrow(/hook\.startPass/);
    expect(wrong({ hook: { type: '2bit', threshold: 0 } })).toThrow(/hook\.threshold/);
  });

  it('ends with the communicator', async () => {
    await all.close();
    await one!.close();
    expect(() => reducer.begin()).toThrow(/closed/);
  });
});
