// Small sums that go together.
import { describe, expect, it } from 'vitest';

import { ranksOfTests } from '../support/ranks.js';

const make = ranksOfTests();

const value = (rank: number, array: number, i: number) => ((rank + 1) * (array + 3) + i) % 31;

function arrays(rank: number, lengths: readonly number[]): Float32Array[] {
  return lengths.map((length, a) => Float32Array.from({ length }, (_, i) => value(rank, a, i)));
}

function sums(n: number, lengths: readonly number[]): Float32Array[] {
  return lengths.map((length, a) =>
    Float32Array.from({ length }, (_, i) =>
      Array.from({ length: n }, (_one, rank) => value(rank, a, i)).reduce((x, y) => x + y, 0),
    ),
  );
}

const lengths = [1, 7, 0, 1000, 64, 5, 4000, 3, 3, 3];

/** Fast where arrays are long. */
function expectSame(got: readonly Float32Array[], want: readonly Float32Array[]): void {
  expect(got.map((one) => Buffer.from(one.buffer).toString('latin1'))).toEqual(
    want.map((one) => Buffer.from(one.buffer).toString('latin1')),
  );
}

describe('setFusion', () => {
  it('gives the sums that each call alone gives', async () => {
    for (const n of [1, 2, 3, 4, 7]) {
      const ranks = await make(n);
      for (const options of [{}, { thresholdBytes: 5000 }, { cycleMs: 2 }, { thresholdBytes: 0 }]) {
        for (const one of ranks) one.setFusion(options);
        const datas = ranks.map((_, rank) => arrays(rank, lengths));
        await Promise.all(
          ranks.flatMap((one, rank) => datas[rank]!.map((data) => one.allReduce(data))),
        );
        for (const data of datas) expectSame(data, sums(n, lengths));
      }
    }
  });

  it('tells every call of a group what ended it', async () => {
    const ranks = await make(2);
    for (const one of ranks) one.setFusion({ cycleMs: 20 });
    const calls = ranks.flatMap((one) =>
      // The second of one rank is longer: it goes with the first, or alone; both disagree.
      [4, one.rank === 0 ? 5 : 4].map((length) => one.allReduce(new Float32Array(length))),
    );
    const settled = await Promise.allSettled(calls);
    const failed = settled.filter((one) => one.status === 'rejected');
    expect(failed.length === 2 || failed.length === 4).toBe(true);
    for (const one of failed) expect(one.reason).toMatchObject({ code: 'ERR_MISMATCH' });
    // In step again.
    const more = await Promise.all(ranks.map((one) => one.allReduce(Float32Array.of(1))));
    expect(more.map(([sum]) => sum)).toEqual([2, 2]);
  });

  it('says what its options may be', async () => {
    const [one] = await make(1);
    expect(() => one!.setFusion({ thresholdBytes: -1 })).toThrow(RangeError);
    expect(() => one!.setFusion({ cycleMs: -1 })).toThrow(RangeError);
    expect(() => one!.setFusion({ cycleMs: 'x' as unknown as number })).toThrow(TypeError);
  });
});
