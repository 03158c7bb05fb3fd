// What arrays are while something is reduced in several steps: wide enough that it rounds once, and that it overflows or
// wraps around only where the result does.
import { dtypeNames, storageOf } from './dtype.js';
import type { HalfDType, NumericArray } from './dtype.js';
import { halfTable, toHalf } from './half.js';

/** Floats that are computed with: halves as float32. */
export type Floats = Float32Array | Float64Array;

/** Sums of bfloat16 are kept so much smaller, exactly: float32 has its range and no more. */
const smaller = 2 ** -16;

const isHalf = (name: string): name is HalfDType => name === 'float16' || name === 'bfloat16';
const nameOf = (dtype: number): string => dtypeNames[dtype] ?? '';

/** A copy of an array of floats. */
export function floatsOf(array: NumericArray, dtype: number): Floats {
  const stored = storageOf(array);
  if (stored instanceof Float64Array) return stored.slice();
  if (!(stored instanceof Uint16Array)) return (stored as Float32Array).slice();
  const table = halfTable(nameOf(dtype) as HalfDType);
  return Float32Array.from(stored, (bits) => table[bits]!);
}

/** Floats into an array of floats, rounded. */
export function storeFloats(values: Floats, into: NumericArray, dtype: number): void {
  const stored = storageOf(into);
  if (stored instanceof Uint16Array) {
    const half = nameOf(dtype) as HalfDType;
    for (let i = 0; i < values.length; ++i) stored[i] = toHalf(half, values[i]!);
  } else {
    (stored as Floats).set(values);
  }
}

/**
 * A copy whose sums are wider: of halves, and of integers of up to 32 bits.
 *
 * @returns undefined for types that have no wider one
 */
export function widened(array: NumericArray, dtype: number): Floats | undefined {
  const name = nameOf(dtype);
  if (isHalf(name)) {
    const wide = floatsOf(array, dtype);
    return name === 'bfloat16' ? wide.map((value) => value * smaller) : wide;
  }
  if (name.startsWith('float') || name.endsWith('64')) return undefined;
  return Float64Array.from(storageOf(array) as Int32Array);
}

/**
 * Sums of {@link widened} arrays, weighed and divided, as elements of their type.
 *
 * @param weights - 'whole': integers are truncated towards zero, and wrap around; else they are rounded to the nearest, halves
 *   to the even one, and stay within the type
 */
export function storeNarrowed(
  values: Floats,
  into: NumericArray,
  dtype: number,
  weights: 'whole' | 'others',
): void {
  const name = nameOf(dtype);
  if (isHalf(name)) {
    const scale = name === 'bfloat16' ? 1 / smaller : 1;
    storeFloats(
      values.map((value) => value * scale),
      into,
      dtype,
    );
    return;
  }
  const stored = storageOf(into) as Int32Array;
  if (weights === 'whole') {
    stored.set(values.map(Math.trunc));
    return;
  }
  const bits = 8 * stored.BYTES_PER_ELEMENT;
  const least = name.startsWith('u') ? 0 : -(2 ** (bits - 1));
  stored.set(
    values.map((value) => Math.min(Math.max(toEven(value), least), least + 2 ** bits - 1)),
  );
}

function toEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
}
