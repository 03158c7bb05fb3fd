// One element of a dtype, validated.
import { argumentError } from '../errors.js';
import { allocate, dtypeNames, isFloat8 } from './dtype.js';
import type { AnyDType, StorageArray } from './dtype.js';
import { toFloat8 } from './float8.js';
import { toHalf } from './half.js';

/** The value of an element of a dtype. */
export type Element<K extends AnyDType> = K extends 'int64' | 'uint64' ? bigint : number;

/** The smallest and the largest of the integer types. */
const ranges: Readonly<Partial<Record<AnyDType, readonly [bigint, bigint]>>> = {
  int8: [-(2n ** 7n), 2n ** 7n - 1n],
  uint8: [0n, 2n ** 8n - 1n],
  int16: [-(2n ** 15n), 2n ** 15n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
};

/**
 * An array of this one element.
 *
 * @throws TypeError for a value of another type, RangeError for an integer out of range.
 */
export function elementOf(dtype: AnyDType, value: unknown): StorageArray {
  const one = allocate(dtypeNames.indexOf(dtype), 1);
  const wide = dtype === 'int64' || dtype === 'uint64';
  if (typeof value !== (wide ? 'bigint' : 'number')) {
    const expected = `a ${wide ? 'bigint' : 'number'} for ${dtype}`;
    throw argumentError('ERR_INVALID_ARG_TYPE', 'value', expected, value);
  }
  const range = ranges[dtype];
  if (range !== undefined) assertInteger(dtype, value as number | bigint, range);
  (one as Record<number, unknown>)[0] = typeof value === 'number' ? bitsOf(dtype, value) : value;
  return one;
}

/** The stored pattern of a number. */
function bitsOf(dtype: AnyDType, value: number): number {
  if (isFloat8(dtype)) return toFloat8(dtype, value);
  return dtype === 'float16' || dtype === 'bfloat16' ? toHalf(dtype, value) : value;
}

function assertInteger(
  dtype: AnyDType,
  value: number | bigint,
  [low, high]: readonly [bigint, bigint],
) {
  if ((typeof value === 'bigint' || Number.isInteger(value)) && value >= low && value <= high)
    return;
  const expected = `an integer from ${low} to ${high} for ${dtype}`;
  throw argumentError('ERR_OUT_OF_RANGE', 'value', expected, value);
}
