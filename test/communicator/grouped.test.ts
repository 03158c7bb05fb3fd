import { describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/index.js';
import { allReduceMany, sparseAllReduce } from '../../lib/index.js';
import { errorWith } from '../support/errors.js';
import { codeOf, ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();

/** The messages of promises that all were rejected with this code. */
function messagesOf(ended: readonly PromiseSettledResult<unknown>[], code: string): string[] {
  expect(ended.map(codeOf)).toEqual(ended.map(() => code));
  return ended.map((one) => ((one as PromiseRejectedResult).reason as Error).message);
}

describe('allReduceMany', () => {
  const arraysOf = (rank: number) => [
    Float32Array.of(rank, 2 * rank, 3),
    Int32Array.of(rank + 1),
    new Float32Array(0),
    Float32Array.from({ length: 5000 }, (_, i) => rank * (i % 3)),
    BigInt64Array.of(BigInt(rank)),
  ];

  it.each([1, 2, 5])('adds up arrays of several types in place: %i ranks', async (n) => {
    const ranks = await open(n);
    const datas = ranks.map((one) => arraysOf(one.rank));
    const before = datas.map((one) => [...one]);
    const got = await Promise.all(ranks.map((one, rank) => allReduceMany(one, datas[rank]!)));
    const total = (n * (n - 1)) / 2;
    const want = [
      Float32Array.of(total, 2 * total, 3 * n),
      Int32Array.of(total + n),
      new Float32Array(0),
      Float32Array.from({ length: 5000 }, (_, i) => total * (i % 3)),
      BigInt64Array.of(BigInt(total)),
    ];
    expect(got).toEqual(ranks.map(() => want));
    got.forEach((list, rank) => {
      list.forEach((one, i) => {
        expect(one).toBe(before[rank]![i]);
      });
    });
  });

  it('takes ops, scales and halves', async () => {
    const ranks = await open(2);
    const averaged = await Promise.all(
      ranks.map((one) =>
        allReduceMany(one, [Float64Array.of(one.rank * 4)], { op: 'avg', scale: 2, postscale: 10 }),
      ),
    );
    expect(averaged).toEqual(ranks.map(() => [Float64Array.of(40)]));
    // 1 as float16; their sum is 2.
    const halves = await Promise.all(
      ranks.map((one) => allReduceMany(one, [Uint16Array.of(0x3c00)], { dtype: 'float16' })),
    );
    expect(halves).toEqual(ranks.map(() => [Uint16Array.of(0x4000)]));
  });

  it('is all or nothing, and errors name the calls of all ranks', async () => {
    const ranks = await open(3);
    const different: ((rank: number) => [Float32Array[], object])[] = [
      // As many elements in all.
      (rank) => [
        [new Float32Array(rank === 1 ? 2 : 3), new Float32Array(rank === 1 ? 3 : 2)],
        { name: 'grad' },
      ],
      (rank) => [[new Float32Array(2)], { name: rank === 1 ? 'grad/conv2' : 'grad/conv1' }],
      (rank) => [[new Float32Array(2)], rank === 1 ? { op: 'max' } : {}],
    ];
    const told = [
      /ranks 0, 2 called allReduceMany 'grad' of float32\[3, 2\] sum.*; rank 1 called allReduceMany 'grad' of float32\[2, 3\]/,
      /ranks 0, 2 called allReduceMany 'grad\/conv1' of .*; rank 1 called allReduceMany 'grad\/conv2' of/,
      /ranks 0, 2 called .* sum 1 1; rank 1 called .* max 1 1/,
    ];
    for (const [i, make] of different.entries()) {
      const calls = ranks.map((one) => make(one.rank));
      for (const [arrays] of calls) for (const one of arrays) one.fill(7);
      const ended = await Promise.allSettled(
        ranks.map((one, rank) => allReduceMany(one, calls[rank]![0], calls[rank]![1])),
      );
      for (const message of messagesOf(ended, 'ERR_MISMATCH')) expect(message).toMatch(told[i]!);
      for (const [arrays] of calls) {
        for (const one of arrays) expect(one).toEqual(new Float32Array(one.length).fill(7));
      }
    }
    await Promise.all(ranks.map((one) => one.barrier()));
  });

  it('shows the beginning of a long list', async () => {
    const ranks = await open(2);
    const ended = await Promise.allSettled(
      ranks.map((one) =>
        allReduceMany(
          one,
          Array.from({ length: 100 + one.rank }, () => new Float32Array(1000)),
          {
            name: 'größe',
          },
        ),
      ),
    );
    for (const message of messagesOf(ended, 'ERR_MISMATCH')) {
      expect(message).toMatch(
        /rank 0 called allReduceMany 'größe' of float32\[1000, [^;]*…; rank 1/,
      );
    }
  });

  it('holds its arrays meanwhile, and tells all what one was given wrong', async () => {
    const ranks = await open(2);
    const data = new Float32Array(4);
    const first = allReduceMany(ranks[0]!, [data]);
    await expect(ranks[0]!.allReduce(data)).rejects.toMatchObject({ code: 'ERR_BUFFER_IN_USE' });
    await allReduceMany(ranks[1]!, [new Float32Array(4)]);
    await first;
    const wrong = [
      [[new Int32Array(1)], { scale: 2 }],
      [[new Float32Array(1)], { scale: 2, op: 'max' }],
      [[new Float32Array(1)], { op: 'mean' }],
      [[new Uint16Array(1)], {}],
      [[[1, 2]], {}],
    ] as const;
    for (const [i, [arrays, options]] of wrong.entries()) {
      const good = [new Float32Array(1).fill(7)];
      const [own, other] = await Promise.allSettled([
        allReduceMany(ranks[i % 2]!, arrays as never, options as never),
        allReduceMany(ranks[1 - (i % 2)]!, good),
      ]);
      expect(codeOf(own)).toMatch(/^ERR_INVALID_ARG/);
      const { message } = (own as PromiseRejectedResult).reason as Error;
      expect((other as PromiseRejectedResult).reason).toMatchObject({
        code: 'ERR_MISMATCH',
        rank: i % 2,
        usable: true,
        message: expect.stringContaining(message) as string,
      });
      expect(good[0]).toEqual(Float32Array.of(7));
    }
    await Promise.all(ranks.map((one) => one.barrier()));
  });
});

describe('sparseAllReduce', () => {
  it('adds up rows of which each rank has as many as it has', async () => {
    const ranks = await open(3);
    const rows = [
      { indices: Int32Array.of(7, 2), values: Float32Array.of(1, 2, 3, 4) },
      { indices: new Int32Array(0), values: new Float32Array(0) },
      { indices: Int32Array.of(2, 9, 2), values: Float32Array.of(10, 20, 30, 40, 50, 60) },
    ];
    const got = await Promise.all(
      ranks.map((one, rank) => sparseAllReduce(one, rows[rank]!, { rowLength: 2 })),
    );
    const want = { indices: Int32Array.of(2, 7, 9), values: Float32Array.of(63, 84, 1, 2, 30, 40) };
    expect(got).toEqual(ranks.map(() => want));
    const mean = await Promise.all(
      ranks.map((one, rank) => sparseAllReduce(one, rows[rank]!, { rowLength: 2, op: 'avg' })),
    );
    expect(mean[1]!.values).toEqual(want.values.map((value) => value / 3));
  });

  it('of nothing is nothing', async () => {
    const ranks = await open(2);
    const none = () => ({ indices: new Int32Array(0), values: new Float64Array(0) });
    const got = await Promise.all(ranks.map((one) => sparseAllReduce(one, none())));
    expect(got).toEqual(ranks.map(none));
  });

  it('is ERR_MISMATCH on every rank where rows are of other lengths or names', async () => {
    const ranks = await open(2);
    const rows = { indices: Int32Array.of(1), values: Float32Array.of(1, 2) };
    const ended = await Promise.allSettled([
      sparseAllReduce(ranks[0]!, rows, { rowLength: 2, name: 'emb' }),
      sparseAllReduce(ranks[1]!, { ...rows, values: Float32Array.of(1) }, { name: 'emb' }),
    ]);
    for (const message of messagesOf(ended, 'ERR_MISMATCH')) {
      expect(message).toMatch(/rank 0 called sparseAllReduce 'emb'.* rows of 2 .* rows of 1 /);
    }
    const [own, other] = await Promise.allSettled([
      sparseAllReduce(ranks[0]!, rows),
      sparseAllReduce(ranks[1]!, rows, { rowLength: 2 }),
    ]);
    expect((own as PromiseRejectedResult).reason).toMatchObject({
      message: expect.stringMatching(/1 rows of 1 \(option rowLength/) as string,
    });
    expect(codeOf(other)).toBe('ERR_MISMATCH');
  });
});

describe('subset', () => {
  it('is a communicator of the ranks of a list, in its order', async () => {
    const ranks = await open(4);
    const parts = await Promise.all(ranks.map((one) => one.subset([3, 1])));
    expect(parts.map((one) => one?.rank)).toEqual([undefined, 1, undefined, 0]);
    const inside = parts.filter((one): one is Communicator => one !== null);
    const sums = await Promise.all(inside.map((one) => one.allReduce(Float32Array.of(2))));
    expect(sums).toEqual([Float32Array.of(4), Float32Array.of(4)]);
    await Promise.all(inside.map((one) => one.close()));
  });

  it('is ERR_MISMATCH where ranks of it were given different lists', async () => {
    const ranks = await open(3);
    const ended = await Promise.allSettled(
      ranks.map((one) => one.subset(one.rank === 0 ? [0, 1, 2] : [0, 1])),
    );
    expect(ended.map(codeOf)).toEqual(['ERR_MISMATCH', 'ERR_MISMATCH', 'fulfilled']);
    await expect(ranks[0]!.subset([])).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', / ranks,.*empty/),
    );
    await expect(ranks[0]!.subset([1, 1])).rejects.toThrow(/rank 1 twice/);
    await expect(ranks[0]!.subset([4])).rejects.toThrow(/ranks\[0\]/);
  });
});
