// scan and exscan: the reductions of the ranks so far, with a rank's own data and without.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import { allocate, dtypes, elementSize, parseDType } from '../../lib/tensor/dtype.js';
import type { DType, StorageArray } from '../../lib/tensor/dtype.js';
import { arrayOf, floats, halves, signed } from '../support/numbers.js';
import { input, reduced } from '../support/reference.js';
import { subjects } from '../support/subjects.js';
import type { Subject } from '../support/subjects.js';

const sizes = [1, 2, 3, 4, 7];
const lengths = [0, 1, 13];
/** Every type with one number of ranks, and with the others one: how ranks divide a call does not depend on the type. */
const dtypesFor = (n: number) => (n === 3 ? dtypes : (['float32'] as const));
/** An odd length of more bytes than a call that runs inline may have. */
const large = 66_001;
const ops = ['sum', 'prod', 'min', 'max'] as const;
type Op = (typeof ops)[number];

const named = (dtype: DType) => (halves.includes(dtype) ? { dtype } : {});

/** What min and max begin with: the ends of the type, of floats the infinities. */
function endOf(dtype: DType, op: 'min' | 'max'): number | bigint {
  const greatest = op === 'min';
  if (dtype === 'float16') return greatest ? 0x7c00 : 0xfc00;
  if (dtype === 'bfloat16') return greatest ? 0x7f80 : 0xff80;
  if ((floats as readonly DType[]).includes(dtype)) return greatest ? Infinity : -Infinity;
  const bits = BigInt(8 * elementSize(dtype)) - (signed.includes(dtype) ? 1n : 0n);
  const end = greatest ? 2n ** bits - 1n : signed.includes(dtype) ? -(2n ** bits) : 0n;
  return dtype.endsWith('64') ? end : Number(end);
}

function identityOf(dtype: DType, op: Op, length: number): StorageArray {
  if (op === 'sum' || op === 'prod') {
    return arrayOf(dtype, new Array<number>(length).fill(op === 'sum' ? 0 : 1));
  }
  return allocate(parseDType(dtype), length).fill(endOf(dtype, op) as never);
}

const bytesOf = (array: StorageArray) =>
  Buffer.from(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength);

for (const { name, make } of subjects) {
  describe.each(sizes)(`${name}, n = %i`, (n) => {
    const all = Array.from({ length: n }, (_, rank) => rank);
    let subject: Subject;
    beforeEach(() => {
      subject = make(n);
    });
    afterEach(() => subject.close());

    describe.each(['scan', 'exscan'] as const)('%s', (method) => {
      it.each(dtypesFor(n))('reduces %s of the ranks so far, in place and not', async (dtype) => {
        for (const op of ops) {
          for (const length of [...lengths, ...(op === 'sum' && n < 4 ? [large] : [])]) {
            const inputs = all.map((rank) => input(dtype, op, rank, n, length));
            const expected = all.map((rank) => {
              const ranks = inputs.slice(0, method === 'scan' ? rank + 1 : rank);
              return ranks.length === 0
                ? identityOf(dtype, op, length)
                : arrayOf(dtype, reduced(op, ranks));
            });
            const options = { op, ...named(dtype) };
            const right = (results: readonly unknown[]) =>
              results.every((array, rank) =>
                bytesOf(array as StorageArray).equals(bytesOf(expected[rank]!)),
              );

            const datas = inputs.map((values) => arrayOf(dtype, values));
            const outs = all.map(() => allocate(parseDType(dtype), length));
            const apart = await subject.call({ method, datas, outs, options });
            expect(apart.every((result, i) => result === outs[i])).toBe(true);
            expect([op, length, right(apart)]).toEqual([op, length, true]);
            const untouched = datas.every((data, rank) =>
              bytesOf(data).equals(bytesOf(arrayOf(dtype, inputs[rank]!))),
            );
            expect(untouched).toBe(true);

            const inPlace = await subject.call({ method, datas, options });
            expect(inPlace.every((result, i) => result === datas[i])).toBe(true);
            expect([op, length, right(inPlace)]).toEqual([op, length, true]);
          }
        }
      });
    });
  });
}

describe('scans', () => {
  const group = Communicator.local(3);
  afterEach(() => group.barrier());

  it('tell each rank where its part of a joint array begins', () => {
    const counts = [5, 0, 7].map((count) => BigInt64Array.of(BigInt(count)));
    expect(group.exscanSync(counts)).toEqual([0n, 5n, 5n].map((at) => BigInt64Array.of(at)));
  });

  it('have no average, and say what to do', async () => {
    for (const method of ['scan', 'exscan'] as const) {
      const call = group[method](
        [1, 2, 3].map((value) => Float32Array.of(value)),
        // @ts-expect-error -- there is no such op of scans
        { op: 'avg' },
      );
      await expect(call).rejects.toMatchObject({
        code: 'ERR_INVALID_ARG_VALUE',
        message: expect.stringMatching(
          new RegExp(`^${method}: .*sum.*prod.*min.*max.* op,.*avg`),
        ) as string,
      });
    }
  });

  it('are a mismatch where one rank counts itself and another does not', async () => {
    const ranks = await group.openRanks();
    const data = () => new Float32Array(4);
    const settled = await Promise.allSettled([
      ranks[0]!.scan(data()),
      ranks[1]!.exscan(data()),
      ranks[2]!.scan(data()),
    ]);
    for (const one of settled) {
      expect(one).toMatchObject({
        reason: {
          code: 'ERR_MISMATCH',
          usable: true,
          message: expect.stringContaining('rank 1 called exscan') as string,
        },
      });
    }
    await Promise.all(ranks.map((one) => one.scan(data())));
  });
});
