import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { dtypes } from '../../lib/tensor/dtype.js';
import { arrayOf, valuesOf } from '../support/numbers.js';

let group: LocalGroup;
let ranks: readonly Communicator[];
const rank = (i: number) => ranks[i]!;
const make = async (n: number) => {
  group = Communicator.local(n);
  ranks = await group.openRanks();
};
afterEach(() => group.close());

describe('send and receive', () => {
  beforeEach(() => make(3));

  it.each(dtypes)('carry %s', async (dtype) => {
    const got = arrayOf(dtype, [0, 0, 0]);
    const [, received] = await Promise.all([
      rank(0).send(arrayOf(dtype, [1, 2, 3]) as Uint16Array, { to: 2, dtype: dtype as 'float16' }),
      rank(2).receive(got as Uint16Array, { from: 0, dtype: dtype as 'float16' }),
    ]);
    expect(received).toEqual({ source: 0, count: 3 });
    expect(valuesOf(dtype, got)).toEqual([1, 2, 3]);
  });

  it('keep the order of one source and tag, and tell tags apart', async () => {
    const a = new Int32Array(1);
    const b = new Int32Array(1);
    const c = new Int32Array(1);
    const send = (value: number, tag: number) => rank(0).send(Int32Array.of(value), { to: 1, tag });
    const sending = Promise.all([send(1, 0), send(2, 0), send(3, 9)]);
    await rank(1).receive(c, { from: 0, tag: 9 });
    await rank(1).receive(a, { from: 0 });
    await rank(1).receive(b, { from: 0 });
    await sending;
    expect([a[0], b[0], c[0]]).toEqual([1, 2, 3]);
  });
});

describe('split', () => {
  it('makes groups by color, ordered by key', async () => {
    await make(4);
    const parts = await Promise.all(ranks.map((one, rank) => one.split(rank % 2, -rank)));
    expect(parts.map((part) => [part?.size, part?.rank])).toEqual([
      [2, 1],
      [2, 1],
      [2, 0],
      [2, 0],
    ]);
    const sums = await Promise.all(
      parts.map(async (part, i) => part?.allReduce(Int32Array.of(10 ** i))),
    );
    expect(sums.map((sum) => sum?.[0])).toEqual([101, 1010, 101, 1010]);
    await Promise.all(parts.map(async (part) => part?.close()));
    await Promise.all(ranks.map((one) => one.barrier()));
  });

  it('leaves out who gives no color', async () => {
    await make(3);
    const parts = await Promise.all(ranks.map((one) => one.split(one.rank === 1 ? null : 0)));
    expect(parts.map((part) => part?.rank)).toEqual([0, undefined, 1]);
    await Promise.all(parts.map(async (part) => part?.close()));
  });
});

describe('allocShared', () => {
  it.each(dtypes)('gives zeroed, aligned %s that collectives take', async (dtype) => {
    await make(2);
    const arrays = ranks.map((one) => one.allocShared(dtype, 1001));
    arrays.forEach((array) => {
      expect(array.length).toBe(1001);
      expect(array.byteOffset).toBe(0);
      expect(Number((array as ArrayLike<number | bigint>)[1000])).toBe(0);
    });
    arrays.forEach((array, i) =>
      array.set(arrayOf(dtype, new Array<number>(1001).fill(i + 1)) as never),
    );
    await Promise.all(
      ranks.map((one, i) => one.allReduce(arrays[i] as Uint16Array, { dtype: dtype as 'float16' })),
    );
    arrays.forEach((array) => {
      expect(new Set(valuesOf(dtype, array))).toEqual(new Set([3]));
    });
  });

  it('gives an empty array for no elements', async () => {
    await make(1);
    expect(group.allocShared('float32', 0)).toEqual(new Float32Array(0));
  });

  it('is empty once its communicator is closed, but not for a call that is under way elsewhere', async () => {
    await make(2);
    const other = Communicator.local(2);
    const [a, b] = (await other.openRanks()) as [Communicator, Communicator];
    const array = ranks[0]!.allocShared('float32', 4);
    array.fill(3);
    const sum = new Float32Array(4);
    const sent = a.allReduce(array, { out: sum });
    await group.close();
    expect(array.length).toBe(0);
    await b.allReduce(new Float32Array(4).fill(1));
    await sent;
    expect([...sum]).toEqual([4, 4, 4, 4]);
    await other.close();
  });
});
