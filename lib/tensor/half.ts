// Converts float16 and bfloat16 bit patterns, as stored in a Uint16Array, to numbers and back.
import type { HalfDType } from './dtype.js';

const patterns = 2 ** 16;
const float32 = new Float32Array(1);
const bits32 = new Uint32Array(float32.buffer);
const tables = new Map<HalfDType, Float32Array>();

function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  // Subnormal: no implicit one, and the smallest exponent.
  return exponent === 0
    ? sign * fraction * 2 ** -24
    : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function fromBfloat16(bits: number): number {
  bits32[0] = bits << 16;
  return float32[0] ?? NaN;
}

/** The numbers of all 65 536 bit patterns: `table[bits]`. Computed once. */
export function halfTable(dtype: HalfDType): Float32Array {
  const known = tables.get(dtype);
  if (known !== undefined) return known;
  const from = dtype === 'float16' ? fromFloat16 : fromBfloat16;
  const table = Float32Array.from({ length: patterns }, (_, bits) => from(bits));
  tables.set(dtype, table);
  return table;
}

/** value / 2 ** shift, rounded to nearest, ties to even. */
function shiftRounded(value: number, shift: number): number {
  const below = value >>> shift;
  const rest = value - below * 2 ** shift;
  const half = 2 ** (shift - 1);
  return below + (rest > half || (rest === half && (below & 1) === 1) ? 1 : 0);
}

function toFloat16(value: number): number {
  float32[0] = value;
  const bits = bits32[0] ?? 0;
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const fraction = bits & 0x7fffff;
  if (exponent === 0xff) return sign | (fraction === 0 ? 0x7c00 : 0x7e00);
  // 112 is the difference of the exponent biases, 13 that of the fraction lengths.
  if (exponent > 112) {
    // A carry out of the fraction goes to the exponent, and past the largest one gives infinity.
    const rounded = shiftRounded(((exponent - 112) << 23) | fraction, 13);
    return sign | Math.min(rounded, 0x7c00);
  }
  const shift = 126 - exponent;
  return shift > 24 ? sign : sign | shiftRounded(fraction | 0x800000, shift);
}

function toBfloat16(value: number): number {
  float32[0] = value;
  const bits = bits32[0] ?? 0;
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40;
  return shiftRounded(bits, 16);
}

/** The bit pattern nearest to a number; it is rounded to float32 first. */
export function toHalf(dtype: HalfDType, value: number): number {
  return dtype === 'float16' ? toFloat16(value) : toBfloat16(value);
}
