// Collectives with counts: by value for groups, ranks and parts of them; and what ranks that disagree are told.
import { afterEach, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { dtypes } from '../../lib/tensor/dtype.js';
import { arrayOf, valuesOf } from '../support/numbers.js';

let group: LocalGroup | undefined;
let ranks: readonly Communicator[] = [];
const make = async (n: number) => {
  await group?.close();
  group = Communicator.local(n);
  ranks = await group.openRanks();
  return group;
};
afterEach(async () => {
  await group?.close();
  group = undefined;
});

const sizes = [1, 2, 3, 5];
/** Some send nothing to some; the longer ones are cut into several messages. */
const scales = [1, 997, 5003];
const range = (n: number) => Array.from({ length: n }, (_, i) => i);
const countOf = (scale: number, from: number, to: number) => scale * ((from * 2 + to) % 4);
const block = (scale: number, from: number, to: number) =>
  range(countOf(scale, from, to)).map((i) => (from * 31 + to * 7 + i) % 128);

/** One call as a group makes it and as ranks do, which must give the same. */
const both = async <T>(
  n: number,
  byGroup: (all: LocalGroup) => Promise<T[]>,
  byRank: (rank: Communicator) => Promise<T>,
): Promise<T[]> => {
  const all = await make(n);
  const ofGroup = await byGroup(all);
  const ofRanks = await Promise.all(ranks.map(byRank));
  expect(ofRanks).toEqual(ofGroup);
  return ofGroup;
};

describe.each(sizes)('%i ranks', (n) => {
  const all = range(n);

  it.each(scales)('exchange parts of their data, times %i', async (scale) => {
    const splits = all.map((from) => all.map((to) => countOf(scale, from, to)));
    const datas = all.map((from) => Int32Array.from(all.flatMap((to) => block(scale, from, to))));
    const results = await both(
      n,
      (whole) => whole.allToAllV(datas, { splits }),
      (one) => one.allToAllV(datas[one.rank]!, { splits: splits[one.rank]! }),
    );
    results.forEach(({ data, counts }, to) => {
      expect(data).toEqual(Int32Array.from(all.flatMap((from) => block(scale, from, to))));
      expect(counts).toEqual(all.map((from) => countOf(scale, from, to)));
    });
  });

  it.each(scales)('gather data of several lengths, times %i', async (scale) => {
    const datas = all.map((from) => Float64Array.from(block(scale, from, 1)));
    const joined = Float64Array.from(all.flatMap((from) => block(scale, from, 1)));
    const counts = datas.map(({ length }) => length);
    const results = await both(
      n,
      (whole) => whole.allGatherV(datas),
      (one) => one.allGatherV(datas[one.rank]!, { counts }),
    );
    for (const result of results) expect(result).toEqual({ data: joined, counts });
    const root = n - 1;
    expect(await group!.gatherV(datas, { root })).toEqual({ data: joined, counts });
    const atRoot = await Promise.all(
      ranks.map((one, r) => one.gatherV(datas[r]!, { root, counts })),
    );
    expect(atRoot).toEqual(all.map((r) => (r === root ? { data: joined, counts } : undefined)));
  });

  it.each(scales)('get parts of the data of one, times %i', async (scale) => {
    const root = n - 1;
    const counts = all.map((to) => countOf(scale, 1, to));
    const data = Uint8Array.from(all.flatMap((to) => block(scale, 1, to)));
    const results = await both(
      n,
      (whole) => whole.scatterV(data, { counts, root }),
      (one) =>
        one.rank === root
          ? one.scatterV(data, { counts, root })
          : one.scatterV(null, { dtype: 'uint8', root }),
    );
    results.forEach((result, to) => {
      expect(result).toEqual({ data: Uint8Array.from(block(scale, 1, to)), counts });
    });
  });

  it('leave the first ranks the remainder of a sum', async () => {
    const length = 1000 * n + (n - 1);
    const datas = all.map((r) => Float32Array.from({ length }, (_, i) => (r + 1) * (i % 50)));
    const factor = (n * (n + 1)) / 2;
    const sum = datas[0]!.map((value) => value * factor);
    const results = await both(
      n,
      (whole) => whole.reduceScatterV(datas),
      (one) => one.reduceScatterV(datas[one.rank]!),
    );
    const counts = all.map((r) => (r < n - 1 ? 1001 : 1000));
    if (n === 1) counts[0] = 1000;
    expect(results.map((result) => result.counts)).toEqual(all.map(() => counts));
    expect(results.flatMap(({ data }) => [...data])).toEqual([...sum]);
    const own = all.map((r) => (r === 0 ? length : 0));
    const most = await Promise.all(
      ranks.map((one, r) => one.reduceScatterV(datas[r]!, { counts: own, op: 'max' })),
    );
    expect(most[0]?.data).toEqual(datas[n - 1]);
    expect(most.slice(1).every(({ data }) => data.length === 0)).toBe(true);
  });
});

it.each(dtypes)('moves and sums %s', async (name) => {
  const whole = await make(3);
  const dtype = name as 'float16';
  const arrays = (...lists: number[][]) => lists.map((values) => arrayOf(dtype, values));
  const [first] = await whole.allGatherV(arrays([1, 2, 3], [], [5, 6]), { dtype });
  expect(valuesOf(dtype, first!.data)).toEqual([1, 2, 3, 5, 6]);
  expect(first!.counts).toEqual([3, 0, 2]);
  const sums = await whole.reduceScatterV(arrays([1, 2], [2, 4], [3, 6]), { dtype });
  expect(sums.map(({ data }) => valuesOf(dtype, data))).toEqual([[6], [12], []]);
});

describe('places', () => {
  it('are filled from the beginning where they are longer', async () => {
    await make(2);
    const outs = ranks.map(() => new Int16Array(0) as never as Int32Array);
    outs[0] = new Int32Array(4).fill(-1);
    outs[1] = new Int32Array(6).fill(-1);
    const results = await Promise.all(
      ranks.map((one, r) => one.allGatherV(new Int32Array(r + 1).fill(r), { out: outs[r] })),
    );
    expect(results.map(({ data }) => data)).toEqual(outs);
    expect(results[1]?.data).toBe(outs[1]);
    expect([...outs[0]]).toEqual([0, 1, 1, -1]);
    expect([...outs[1]]).toEqual([0, 1, 1, -1, -1, -1]);
  });

  it('are filled by the blocking twins, too', async () => {
    const whole = await make(2);
    const datas = [Float32Array.of(1), Float32Array.of(2, 3)];
    const joined = { data: Float32Array.of(1, 2, 3), counts: [1, 2] };
    expect(whole.allGatherVSync(datas)).toEqual([joined, joined]);
    expect(whole.gatherVSync(datas)).toEqual(joined);
    const out = new Float32Array(3);
    expect(whole.gatherVSync(datas, { out })).toEqual(joined);
    expect(out).toEqual(joined.data);
    expect(whole.scatterVSync(Float32Array.of(1, 2), { counts: [2, 0] })[0]?.data).toEqual(
      Float32Array.of(1, 2),
    );
    const swapped = whole.allToAllVSync(datas, {
      splits: [
        [0, 1],
        [2, 0],
      ],
    });
    expect(swapped.map(({ data }) => [...data])).toEqual([[2, 3], [1]]);
    const sums = whole.reduceScatterVSync([datas[1]!, datas[1]!], { counts: [0, 2] });
    expect(sums.map(({ data }) => [...data])).toEqual([[], [4, 6]]);
  });
});

describe('ranks that disagree', () => {
  const codes = async (calls: readonly Promise<unknown>[]) => {
    const settled = await Promise.allSettled(calls);
    const errors = settled.map((one) => (one.status === 'rejected' ? (one.reason as Error) : one));
    for (const error of errors) expect(error).toMatchObject({ code: 'ERR_MISMATCH', usable: true });
    const messages = new Set(
      // Each in the name of its own call.
      errors.map((error) => (error as Error).message.replace(/^\w+: /u, '')),
    );
    expect(messages.size).toBe(1);
    // Nothing was left behind: the next call finds all ranks where they were.
    const next = await Promise.all(ranks.map((one) => one.allReduce(Int32Array.of(1))));
    expect(next.every(([sum]) => sum === ranks.length)).toBe(true);
    return [...messages][0];
  };

  it.each<[string, RegExp, (one: Communicator) => Promise<unknown>]>([
    [
      'about the type',
      /ranks 0, 2 called allGatherV\(int32\); rank 1 called allGatherV\(float32\)/u,
      (one) => one.allGatherV(one.rank === 1 ? new Float32Array(2) : (new Int32Array(2) as never)),
    ],
    [
      'about the root',
      /rank 1 called gatherV\(int32, root 1\)/u,
      (one) => one.gatherV(new Int32Array(2), { root: one.rank === 1 ? 1 : 0 }),
    ],
    [
      'about the operation',
      /rank 2 called reduceScatterV\(int32, max\)/u,
      (one) => one.reduceScatterV(new Int32Array(2), { op: one.rank === 2 ? 'max' : 'sum' }),
    ],
    [
      'about what comes',
      /rank 0 sends 1 elements.*rank 2.*expects 2/u,
      (one) =>
        one.allToAllV(new Int32Array(3), {
          splits: [1, 1, 1],
          receiveSplits: one.rank === 2 ? [2, 1, 1] : [1, 1, 1],
        }),
    ],
    [
      'about the shares',
      /rank 1 .*rank 0 gets 2 elements.*rank 0 .*3/u,
      (one) =>
        one.reduceScatterV(new Int32Array(3), { counts: one.rank === 1 ? [2, 1, 0] : [3, 0, 0] }),
    ],
    [
      'since there is no room',
      /rank 1 gets 6 elements.*room for 5/u,
      (one) => one.allGatherV(new Int32Array(2), { out: new Int32Array(one.rank === 1 ? 5 : 6) }),
    ],
    [
      'about the collective',
      /rank 1 called gatherV/u,
      (one) =>
        one.rank === 1 ? one.gatherV(new Int32Array(2)) : one.allGatherV(new Int32Array(2)),
    ],
  ])('%s all hear it', async (_, message, call) => {
    await make(3);
    expect(await codes(ranks.map(call))).toMatch(message);
  });

  it('in a group are told, too', async () => {
    const whole = await make(2);
    const datas = [Int32Array.of(1), Int32Array.of(2)];
    const outs = [new Int32Array(2), new Int32Array(1)];
    await expect(whole.allGatherV(datas, { out: outs })).rejects.toMatchObject({
      code: 'ERR_MISMATCH',
      rank: 1,
    });
  });
});

describe('what is wrong is said at once', () => {
  it.each<[string, string, (one: Communicator) => Promise<unknown>]>([
    ['no splits', 'splits', (one) => one.allToAllV(new Int32Array(2), {} as never)],
    ['too few', 'splits', (one) => one.allToAllV(new Int32Array(2), { splits: [2] })],
    ['another sum', 'splits', (one) => one.allToAllV(new Int32Array(2), { splits: [1, 2] })],
    ['no count', 'splits[1]', (one) => one.allToAllV(new Int32Array(2), { splits: [3, -1] })],
    [
      'another type',
      'out',
      (one) => one.allGatherV(new Int32Array(2), { out: new Int8Array(9) as never }),
    ],
    ['no counts', 'counts', (one) => one.scatterV(new Int32Array(2), {} as never)],
    ['no type', 'scatterV', (one) => one.scatterV(null, { root: 1 } as never)],
    ['no root', 'root', (one) => one.gatherV(new Int32Array(2), { root: 2 })],
    ['no op', 'op', (one) => one.reduceScatterV(new Int32Array(2), { op: 'mean' as never })],
  ])('%s', async (_, name, call) => {
    await make(2);
    const error = await call(ranks[0]!).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect((error as { code: string }).code).toMatch(/^ERR_(INVALID_ARG|OUT_OF)/u);
    expect((error as Error).message).toContain(name);
  });

  it('arrays that overlap', async () => {
    const whole = await make(1);
    const memory = new Int32Array(4);
    await expect(
      whole.allGatherV([memory.subarray(0, 2)], { out: [memory.subarray(1)] }),
    ).rejects.toMatchObject({ code: 'ERR_BUFFER_OVERLAP' });
  });
});

it('ends with a signal and when a rank leaves', async () => {
  await make(2);
  const controller = new AbortController();
  const pending = ranks[0]!.allGatherV(Int32Array.of(1), { signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(pending).rejects.toThrow('enough');
  await make(2);
  await ranks[1]!.close();
  await expect(ranks[0]!.allGatherV(Int32Array.of(1))).rejects.toMatchObject({
    code: 'ERR_PEER_LOST',
    op: 'allGatherV',
  });
});
