// Wider arrays for reductions in several steps: they round once, and overflow or wrap only where the result does.
import { dtypeNames, storageOf } from './dtype.js';
import type { HalfDType, NumericArray } from './dtype.js';
import { halfTable, toHalf } from './half.js';

/** Floats for computing: halves as float32. */
export type Floats = Float32Array | Float64Array;

/** Exact scale for sums of bfloat16, because float32 has the same range. */
const smaller = 2 ** -16;

const isHalf = (name: string): name is HalfDType => name === 'float16' || name === 'bfloat16';
const nameOf = (dtype: number): string => dtypeNames[dtype] ?? '';

export function floatsOf(array: NumericArray, dtype: number): Floats {
  const stored = storageOf(array);
  if (stored instanceof Float64Array) return stored.slice();
  if (!(stored instanceof Uint16Array)) return (stored as Float32Array).slice();
  const table = halfTable(nameOf(dtype) as HalfDType);
  return Float32Array.from(stored, (bits) => table[bits]!);
}

/** Stores floats, rounded to the array's type. */
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
 * A wider copy for sums of halves and of integers up to 32 bits.
 *
 * @returns undefined for types without a wider one
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
 * Stores weighted and divided sums of {@link widened} arrays in their original type.
 *
 * @param weights - 'whole': integers are truncated towards zero and wrap; otherwise rounded half to even and clamped
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
