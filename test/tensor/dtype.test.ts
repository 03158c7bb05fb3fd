import { describe, expect, it } from 'vitest';

import {
  allocate,
  allocateLike,
  dtypeNumber,
  dtypeNames,
  dtypes,
  elementSize,
  parseDType,
  storageOf,
} from '../../lib/tensor/dtype.js';
import type { Float16ArrayLike } from '../../lib/tensor/dtype.js';
import { errorWith } from '../support/errors.js';

describe('dtypes', () => {
  it('are told from their arrays', () => {
    for (const dtype of dtypes) {
      const number = parseDType(dtype);
      expect(dtypeNames[number]).toBe(dtype);
      const array = allocate(number, 3);
      expect(array.BYTES_PER_ELEMENT).toBe(elementSize(dtype));
      expect(dtypeNumber(array, dtype, 'data')).toBe(number);
      if (!(array instanceof Uint16Array))
        expect(dtypeNumber(array, undefined, 'data')).toBe(number);
    }
  });

  it('are told from subclasses and from arrays of other realms', async () => {
    expect(dtypeNumber(Buffer.alloc(2), undefined, 'data')).toBe(parseDType('uint8'));
    const { runInNewContext } = await import('node:vm');
    expect(dtypeNumber(runInNewContext('new Float64Array(2)'), undefined, 'data')).toBe(
      parseDType('float64'),
    );
  });

  it('are not told from arrays that define a length of their own', () => {
    class Longer extends Float32Array {
      override get length(): number {
        return 2 ** 30;
      }
    }
    const own = new Float32Array(2);
    Object.defineProperty(own, 'length', { value: 2 });
    for (const forged of [new Longer(2), own]) {
      expect(() => dtypeNumber(forged, undefined, 'data')).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }) as Error,
      );
    }
  });

  it('are not told from what only says it is an array', () => {
    const fake = { [Symbol.toStringTag]: 'Float32Array', length: 1 };
    expect(() => dtypeNumber(fake, undefined, 'data')).toThrow(/expected a TypedArray .* for data/);
  });

  // Node 20 has no Float16Array: its shape stands in where the runtime lacks it.
  it('of a Float16Array is float16, and native code sees its bits', () => {
    class HalfArray extends Uint16Array {
      override get [Symbol.toStringTag]() {
        return 'Float16Array' as never;
      }
    }
    const array = new HalfArray([0x3c00, 0x4000]) as unknown as Float16ArrayLike;
    expect(dtypeNumber(array, undefined, 'data')).toBe(parseDType('float16'));
    expect(() => dtypeNumber(array, 'bfloat16', 'data')).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /'float16'.*data.*dtype.*'bfloat16'/),
    );
    const bits = storageOf(array);
    expect(Object.getPrototypeOf(bits)).toBe(Uint16Array.prototype);
    expect(bits.buffer).toBe(array.buffer);
    expect([...(bits as Uint16Array)]).toEqual([0x3c00, 0x4000]);
    expect(allocateLike(array, 6, 5)).toBeInstanceOf(HalfArray);
  });
});
