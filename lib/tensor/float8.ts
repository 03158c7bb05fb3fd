// Converts float8 bit patterns, as stored in a Uint8Array, to numbers and back.
import { aNumber, integer, oneOf } from '../checks.js';
import type { Float8DType } from './dtype.js';

interface Layout {
  readonly mantissaBits: number;
  readonly bias: number;
  /** Patterns below it, without the sign, are finite. */
  readonly finite: number;
}

const layouts: Readonly<Record<Float8DType, Layout>> = {
  float8e4m3: { mantissaBits: 3, bias: 7, finite: 0x7f },
  float8e5m2: { mantissaBits: 2, bias: 15, finite: 0x7c },
};
const sign = 0x80;

function layoutOf(dtype: unknown): Layout {
  return layouts[oneOf(dtype, 'dtype', Object.keys(layouts) as Float8DType[])];
}

/** The number of a bit pattern. */
export function fromFloat8(dtype: Float8DType, bits: number): number {
  const { mantissaBits, bias, finite } = layoutOf(dtype);
  integer(bits, 'bits', 0, 0xff);
  const factor = bits & sign ? -1 : 1;
  const size = bits & (sign - 1);
  if (size >= finite) return size === finite && dtype === 'float8e5m2' ? factor * Infinity : NaN;
  const exponent = size >> mantissaBits;
  const mantissa = size & (2 ** mantissaBits - 1);
  // Subnormal: no implicit one, and the smallest exponent.
  return exponent === 0
    ? factor * mantissa * 2 ** (1 - bias - mantissaBits)
    : factor * (2 ** mantissaBits + mantissa) * 2 ** (exponent - bias - mantissaBits);
}

/** The nearest bit pattern, ties to even; larger numbers, including infinity, become the largest one. */
export function toFloat8(dtype: Float8DType, value: number): number {
  const { mantissaBits, bias, finite } = layoutOf(dtype);
  aNumber(value, 'value');
  if (Number.isNaN(value)) return sign - 1;
  const negative = value < 0 || Object.is(value, -0) ? sign : 0;
  const size = Math.abs(value);
  if (size >= fromFloat8(dtype, finite - 1)) return negative | (finite - 1);
  // Subnormal numbers share the spacing of the smallest exponent.
  const exponent = Math.max(size === 0 ? -Infinity : Math.floor(Math.log2(size)), 1 - bias);
  const steps = size / 2 ** (exponent - mantissaBits);
  const below = Math.floor(steps);
  const rest = steps - below;
  const rounded = below + (rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? 1 : 0);
  // A carry out of the mantissa goes to the exponent.
  return negative | ((exponent + bias - 1) * 2 ** mantissaBits + rounded);
}
