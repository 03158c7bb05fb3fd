import { describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import { errorWith } from '../support/errors.js';
import { ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();

describe('scale and postscale in the memory of the host', () => {
  const n = 3;
  const values = (rank: number, length: number, Type: unknown) =>
    (Type as Float64ArrayConstructor).from({ length }, (_, i) => (rank + 1) * ((i % 7) - 3));

  it.each([1, 1000, 9001])('multiply data and result, of %i elements', async (length) => {
    const ranks = await open(n);
    for (const Type of [Float32Array, Float64Array] as const) {
      const datas = ranks.map((_, rank) => values(rank, length, Type));
      const want = datas[0]!.map(
        (__, i) => datas.reduce((sum, data) => sum + data[i]! * 0.5, 0) * 4,
      );
      const out = ranks.map(() => new Type(length));
      await Promise.all(
        ranks.map((one, rank) =>
          one.allReduce(datas[rank]!, { scale: 0.5, postscale: 4, out: out[rank]! } as never),
        ),
      );
      expect(out).toEqual(ranks.map(() => want));
      expect(datas).toEqual(ranks.map((_, rank) => values(rank, length, Type)));
      await Promise.all(
        ranks.map((one, rank) => one.allReduce(datas[rank]!, { scale: 0.5, postscale: 4 })),
      );
      expect(datas).toEqual(ranks.map(() => want));
    }
  });

  it('of a group one each, and with averages', async () => {
    await using group = Communicator.local(n);
    const datas = () => Array.from({ length: n }, (_, rank) => Float32Array.of(rank + 1));
    expect(await group.allReduce(datas(), { scale: [1, 2, 3] })).toEqual(
      datas().map(() => Float32Array.of(14)),
    );
    expect(group.allReduceSync(datas(), { op: 'avg', postscale: 0.5 })).toEqual(
      datas().map(() => Float32Array.of(1)),
    );
  });

  it('of each call that adds up', async () => {
    const ranks = await open(2);
    const both = { scale: 2, postscale: 5 };
    const data = () => Float64Array.of(1, 2);
    const got = await Promise.all(
      ranks.map(async (one) => [
        await one.reduce(data(), { ...both, root: 1 }),
        await one.reduceScatter(data(), both),
        await one.scan(data(), both),
        await one.exscan(data(), both),
      ]),
    );
    expect(got).toEqual([
      [undefined, Float64Array.of(20), Float64Array.of(10, 20), Float64Array.of(0, 0)],
      [
        Float64Array.of(20, 40),
        Float64Array.of(40),
        Float64Array.of(20, 40),
        Float64Array.of(10, 20),
      ],
    ]);
  });

  it('keep halves from overflowing, which the sum alone does', async () => {
    const ranks = await open(2);
    // 60 000 as float16.
    const data = () => Uint16Array.of(0x7b53);
    const dtype = 'float16';
    const plain = await Promise.all(ranks.map((one) => one.allReduce(data(), { dtype })));
    expect(plain[0]).toEqual(Uint16Array.of(0x7c00));
    const scaled = await Promise.all(
      ranks.map((one) => one.allReduce(data(), { dtype, scale: 0.5 })),
    );
    expect(scaled).toEqual(ranks.map(data));
  });

  it('leave the data as it was where ranks do not agree', async () => {
    const ranks = await open(2);
    const datas = [Float32Array.of(1, 2), Float32Array.of(3)];
    const ended = await Promise.allSettled(
      ranks.map((one, rank) => one.allReduce(datas[rank]!, { scale: 2, postscale: 2 })),
    );
    expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(datas).toEqual([Float32Array.of(1, 2), Float32Array.of(3)]);
  });

  it.each([
    [{ scale: NaN }, /finite number.* scale,/],
    [{ postscale: Infinity }, /finite number.* postscale,/],
    [{ scale: 2, op: 'max' }, /'sum' or 'avg'.* op,/],
  ])('are checked: %j', async (options, message) => {
    const [one] = await open(1);
    await expect(one!.allReduce(new Float32Array(1), options as never)).rejects.toThrow(message);
  });

  it('are for floats', async () => {
    const [one] = await open(1);
    await expect(one!.allReduce(new Int32Array(1), { scale: 2 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /scale.* data,.*int32/),
    );
  });
});
