import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { reduceOps } from '../../lib/communicator/calls/reduce-op.js';
import { Communicator } from '../../lib/communicator/communicator.js';
import { allocate, dtypes, elementSize, parseDType } from '../../lib/tensor/dtype.js';
import type { DType, StorageArray } from '../../lib/tensor/dtype.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, floats, halves, signed, valuesOf } from '../support/numbers.js';
import { block, input, reduced } from '../support/reference.js';
import { subjects } from '../support/subjects.js';
import type { Subject } from '../support/subjects.js';

const sizes = [1, 3, 4];
const lengths = [0, 1, 13];
/** Every type in one way and with one number of ranks: neither depends on the type, but that halves have to be named. */
const dtypesOf = (subject: string, n: number): readonly DType[] =>
  n !== 3 ? ['float32'] : subject === subjects[0].name ? dtypes : ['float32', 'bfloat16'];
/** An odd length of more bytes than a call that runs inline may have; the wide types will do. */
const largeOf = (dtype: DType) => Math.floor(66_000 / Math.max(elementSize(dtype), 4)) | 1;

const named = (dtype: DType) => (halves.includes(dtype) ? { dtype } : {});
const bytesOf = (array: unknown) => {
  const { buffer, byteOffset, byteLength } = array as StorageArray;
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
};
/** Fails unless the arrays hold these values; undefined where a rank gets none. Bytes first: far quicker. */
function expectArrays(
  dtype: DType,
  arrays: readonly unknown[],
  expected: readonly (readonly number[] | undefined)[],
): void {
  const same = arrays.map((array, i) => {
    const values = expected[i];
    if (values === undefined || array === undefined) return values === array;
    return bytesOf(array).equals(bytesOf(arrayOf(dtype, values)));
  });
  if (same.includes(false) || arrays.length !== expected.length) {
    expect(arrays.map((array) => array && valuesOf(dtype, array as StorageArray))).toEqual(
      expected,
    );
    // Equal values of different bits, or a list too short.
    expect(same).toEqual(expected.map(() => true));
  }
}
const zeros = (dtype: DType, n: number, length: number) =>
  Array.from({ length: n }, () => arrayOf(dtype, new Array<number>(length).fill(0)));
/** What `dtype` holds of these values: integers wrap. */
const held = (dtype: DType, values: readonly number[]) => valuesOf(dtype, arrayOf(dtype, values));

const scanOps = ['sum', 'prod', 'min', 'max'] as const;

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

function identityOf(dtype: DType, op: (typeof scanOps)[number], length: number): StorageArray {
  if (op === 'sum' || op === 'prod') {
    return arrayOf(dtype, new Array<number>(length).fill(op === 'sum' ? 0 : 1));
  }
  return allocate(parseDType(dtype), length).fill(endOf(dtype, op) as never);
}

for (const { name, make } of subjects) {
  describe.each(sizes)(`${name}, n = %i`, (n) => {
    const all = Array.from({ length: n }, (_, rank) => rank);
    let subject: Subject;
    beforeEach(() => {
      subject = make(n);
    });
    afterEach(() => subject.close());

    it.each(dtypesOf(name, n))(
      'allReduce combines %s with every op, in place and not',
      async (dtype) => {
        for (const op of reduceOps) {
          for (const length of [...lengths, ...(op === 'sum' ? [largeOf(dtype)] : [])]) {
            const inputs = all.map((rank) => input(dtype, op, rank, n, length));
            const expected = all.map(() => held(dtype, reduced(op, inputs)));
            const options = { op, ...named(dtype) };

            const datas = inputs.map((values) => arrayOf(dtype, values));
            const outs = zeros(dtype, n, length);
            const apart = await subject.call({ method: 'allReduce', datas, outs, options });
            expect(apart.every((result, i) => result === outs[i])).toBe(true);
            expectArrays(dtype, apart, expected);
            expectArrays(dtype, datas, inputs);

            const inPlace = await subject.call({ method: 'allReduce', datas, options });
            expect(inPlace.every((result, i) => result === datas[i])).toBe(true);
            expectArrays(dtype, inPlace, expected);
          }
        }
      },
    );

    it.each(dtypesOf(name, n))(
      'reduce leaves the result of %s at the root alone',
      async (dtype) => {
        for (const op of reduceOps) {
          for (const root of new Set([0, n - 1])) {
            const inputs = all.map((rank) => input(dtype, op, rank, n, 13));
            const expected = all.map((rank) =>
              rank === root ? held(dtype, reduced(op, inputs)) : undefined,
            );
            const options = { op, root, ...named(dtype) };

            const datas = inputs.map((values) => arrayOf(dtype, values));
            const outs = zeros(dtype, n, 13);
            expectArrays(
              dtype,
              await subject.call({ method: 'reduce', datas, outs, options }),
              expected,
            );
            expectArrays(dtype, datas, inputs);

            const inPlace = await subject.call({ method: 'reduce', datas, options });
            expectArrays(dtype, inPlace, expected);
            // The others' data is as it was.
            all
              .filter((rank) => rank !== root)
              .forEach((rank) => {
                expect(valuesOf(dtype, datas[rank]!)).toEqual(inputs[rank]);
              });
          }
        }
      },
    );

    it.each(dtypesOf(name, n))('broadcast copies %s from any root', async (dtype) => {
      for (const root of new Set([0, n - 1])) {
        for (const length of [...lengths, largeOf(dtype)]) {
          const inputs = all.map((rank) => input(dtype, 'sum', rank, n, length));
          const datas = inputs.map((values) => arrayOf(dtype, values));
          const results = await subject.call({
            method: 'broadcast',
            datas,
            options: { root, ...named(dtype) },
          });
          expect(results.every((result, i) => result === datas[i])).toBe(true);
          expectArrays(
            dtype,
            results,
            all.map(() => inputs[root]),
          );
        }
      }
    });

    it.each(dtypesOf(name, n))('allGather puts the blocks of %s in rank order', async (dtype) => {
      for (const count of [...lengths, Math.ceil(largeOf(dtype) / n)]) {
        const inputs = all.map((rank) => input(dtype, 'sum', rank, n, count));
        const datas = inputs.map((values) => arrayOf(dtype, values));
        const expected = all.map(() => inputs.flat());
        const options = named(dtype);
        expectArrays(dtype, await subject.call({ method: 'allGather', datas, options }), expected);
        const outs = zeros(dtype, n, n * count);
        const given = await subject.call({ method: 'allGather', datas, outs, options });
        expect(given.every((result, i) => result === outs[i])).toBe(true);
        expectArrays(dtype, given, expected);
        // In place: each rank's data is its own block of its out.
        const own = outs.map((out, rank) => out.subarray(rank * count, (rank + 1) * count));
        own.forEach((part, rank) => part.set(datas[rank] as never));
        expectArrays(
          dtype,
          await subject.call({ method: 'allGather', datas: own, outs, options }),
          expected,
        );
      }
    });

    it.each(dtypesOf(name, n))('reduceScatter leaves each rank its block of %s', async (dtype) => {
      for (const op of reduceOps) {
        for (const count of [
          ...lengths,
          ...(op === 'sum' ? [Math.ceil(largeOf(dtype) / n)] : []),
        ]) {
          const inputs = all.map((rank) => input(dtype, op, rank, n, n * count));
          const datas = inputs.map((values) => arrayOf(dtype, values));
          const total = held(dtype, reduced(op, inputs));
          const expected = all.map((rank) => block(total, rank, count));
          const options = { op, ...named(dtype) };
          expectArrays(
            dtype,
            await subject.call({ method: 'reduceScatter', datas, options }),
            expected,
          );
          expectArrays(dtype, datas, inputs);
          const outs = datas.map((data, rank) => data.subarray(rank * count, (rank + 1) * count));
          const inPlace = await subject.call({ method: 'reduceScatter', datas, outs, options });
          expectArrays(dtype, inPlace, expected);
        }
      }
    });

    it.each(dtypesOf(name, n))('allToAll transposes the blocks of %s', async (dtype) => {
      for (const count of [...lengths, Math.ceil(largeOf(dtype) / n)]) {
        const inputs = all.map((rank) => input(dtype, 'sum', rank, n, n * count));
        const datas = inputs.map((values) => arrayOf(dtype, values));
        const expected = all.map((rank) => inputs.flatMap((values) => block(values, rank, count)));
        const results = await subject.call({ method: 'allToAll', datas, options: named(dtype) });
        expectArrays(dtype, results, expected);
        expectArrays(dtype, datas, inputs);
      }
    });

    it.each(dtypesOf(name, n))('gather and scatter undo each other with %s', async (dtype) => {
      for (const root of new Set([0, n - 1])) {
        for (const count of [...lengths, Math.ceil(largeOf(dtype) / n)]) {
          const inputs = all.map((rank) => input(dtype, 'sum', rank, n, count));
          const datas = inputs.map((values) => arrayOf(dtype, values));
          const options = { root, ...named(dtype) };
          const gathered = await subject.call({ method: 'gather', datas, options });
          expectArrays(
            dtype,
            gathered,
            all.map((rank) => (rank === root ? inputs.flat() : undefined)),
          );
          const outs = zeros(dtype, n, count);
          const scattered = await subject.call({
            method: 'scatter',
            datas: gathered,
            outs,
            options,
          });
          expect(scattered.every((result, i) => result === outs[i])).toBe(true);
          expectArrays(dtype, scattered, inputs);
        }
      }
    });

    describe.each(['scan', 'exscan'] as const)('%s', (method) => {
      it.each(dtypesOf(name, n))(
        'reduces %s of the ranks so far, in place and not',
        async (dtype) => {
          for (const op of scanOps) {
            for (const length of [...lengths, ...(op === 'sum' && n < 4 ? [largeOf(dtype)] : [])]) {
              const inputs = all.map((rank) => input(dtype, op, rank, n, length));
              const expected = all.map((rank) => {
                const ranks = inputs.slice(0, method === 'scan' ? rank + 1 : rank);
                return ranks.length === 0
                  ? identityOf(dtype, op, length)
                  : arrayOf(dtype, reduced(op, ranks));
              });
              const options = { op, ...named(dtype) };
              const right = (results: readonly unknown[]) =>
                results.every((array, rank) => bytesOf(array).equals(bytesOf(expected[rank])));

              const datas = inputs.map((values) => arrayOf(dtype, values));
              const outs = all.map(() => allocate(parseDType(dtype), length));
              const apart = await subject.call({ method, datas, outs, options });
              expect(apart.every((result, i) => result === outs[i])).toBe(true);
              expect([op, length, right(apart)]).toEqual([op, length, true]);
              expectArrays(dtype, datas, inputs);

              const inPlace = await subject.call({ method, datas, options });
              expect(inPlace.every((result, i) => result === datas[i])).toBe(true);
              expect([op, length, right(inPlace)]).toEqual([op, length, true]);
            }
          }
        },
      );
    });
  });
}

describe('scans', () => {
  const group = Communicator.local(3);
  afterEach(() => group.barrier());

  it('have no average, and say what to do', async () => {
    for (const method of ['scan', 'exscan'] as const) {
      const data = [1, 2, 3].map((value) => Float32Array.of(value));
      // @ts-expect-error -- there is no such op of scans
      await expect(group[method](data, { op: 'avg' })).rejects.toThrow(
        errorWith(
          'ERR_INVALID_ARG_VALUE',
          new RegExp(`^${method}: .*sum.*prod.*min.*max.* op,.*avg`),
        ),
      );
    }
  });
});
