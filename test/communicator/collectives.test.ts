import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import { allocate, dtypes, elementSize, parseDType } from '../../lib/tensor/dtype.js';
import type { DType, StorageArray } from '../../lib/tensor/dtype.js';
import { expectCall, methods, rules, type Kind } from '../support/collective-rules.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, floats, halves, signed, valuesOf } from '../support/numbers.js';
import { subjects, type Subject } from '../support/subjects.js';

const sizes = [1, 3, 4];
const lengths = [0, 1, 13];
/** Every type in one way and with one number of ranks: neither depends on the type, but that halves have to be named. */
const dtypesOf = (subject: string, n: number): readonly DType[] =>
  n !== 3 ? ['float32'] : subject === subjects[0].name ? dtypes : ['float32', 'bfloat16'];
/** An odd number of float32s of more bytes than a call that runs inline may have. */
const large = 16_501;

const bytesOf = ({ buffer, byteOffset, byteLength }: StorageArray) =>
  Buffer.from(buffer, byteOffset, byteLength);

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

/** To the bit, which is far quicker than by value. */
const arrays: Kind<StorageArray> = {
  make: (dtype, _, values) => arrayOf(dtype, values),
  part: (array, begin, end) => array.subarray(begin, end),
  check(array, wanted, { dtype, op, length }) {
    const right =
      wanted !== undefined
        ? arrayOf(dtype, wanted)
        : op === 'min' || op === 'max'
          ? allocate(parseDType(dtype), length).fill(endOf(dtype, op) as never)
          : arrayOf(dtype, Array<number>(length).fill(op === 'sum' ? 0 : 1));
    if (bytesOf(array).equals(bytesOf(right))) return;
    expect(valuesOf(dtype, array)).toEqual(valuesOf(dtype, right));
    throw new Error('equal values of different bits');
  },
};

for (const { name, make } of subjects) {
  describe.each(sizes)(`${name}, n = %i`, (n) => {
    let subject: Subject;
    beforeEach(() => {
      subject = make(n);
    });
    afterEach(() => subject.close());

    describe.each(methods)('%s', (method) => {
      it.each(dtypesOf(name, n))('of %s, in place and not', async (dtype) => {
        const { ops = ['sum'], root, in: brings, out: gets } = rules[method];
        const long = brings === 'one' && gets === 'one' ? large : Math.ceil(large / n);
        const more = halves.includes(dtype) ? { dtype } : {};
        const call = { method, dtype, n, more };
        for (const op of ops) {
          await expectCall(subject, arrays, { ...call, op, root: n - 1, count: 13 });
        }
        // Neither roots nor lengths depend on the operation.
        for (const at of root === undefined ? [n - 1] : new Set([0, n - 1])) {
          for (const count of dtype === 'float32' ? [...lengths, long] : lengths) {
            await expectCall(subject, arrays, { ...call, op: 'sum', root: at, count });
          }
        }
      });
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
