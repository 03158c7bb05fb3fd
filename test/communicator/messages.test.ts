import { describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import { dtypes } from '../../lib/tensor/dtype.js';
import { arrayOf, valuesOf } from '../support/numbers.js';
import { ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();

describe('send and receive', () => {
  it.each(dtypes)('carry %s', async (dtype) => {
    const [first, , third] = await open(3);
    const got = arrayOf(dtype, [0, 0, 0]);
    const [, received] = await Promise.all([
      first!.send(arrayOf(dtype, [1, 2, 3]) as Uint16Array, { to: 2, dtype: dtype as 'float16' }),
      third!.receive(got as Uint16Array, { from: 0, dtype: dtype as 'float16' }),
    ]);
    expect(received).toEqual({ source: 0, count: 3 });
    expect(valuesOf(dtype, got)).toEqual([1, 2, 3]);
  });
});

describe('split', () => {
  it('leaves out who gives no color', async () => {
    const ranks = await open(3);
    const parts = await Promise.all(ranks.map((one) => one.split(one.rank === 1 ? null : 0)));
    expect(parts.map((part) => part?.rank)).toEqual([0, undefined, 1]);
    await Promise.all(parts.map(async (part) => part?.close()));
  });
});

describe('allocShared', () => {
  it.each(dtypes)('gives zeroed, aligned %s that collectives take', async (dtype) => {
    const ranks = await open(2);
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
    const [one] = await open(1);
    expect(one!.allocShared('float32', 0)).toEqual(new Float32Array(0));
  });

  it('is empty once its communicator is closed, but not for a call that is under way elsewhere', async () => {
    const ranks = await open(2);
    const other = Communicator.local(2);
    const [a, b] = (await other.openRanks()) as [Communicator, Communicator];
    const array = ranks[0]!.allocShared('float32', 4);
    array.fill(3);
    const sum = new Float32Array(4);
    const sent = a.allReduce(array, { out: sum });
    await ranks[0]!.close();
    expect(array.length).toBe(0);
    await b.allReduce(new Float32Array(4).fill(1));
    await sent;
    expect([...sum]).toEqual([4, 4, 4, 4]);
    await other.close();
  });
});
