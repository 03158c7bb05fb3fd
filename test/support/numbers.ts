// Arrays of every dtype filled with small integers, which all of them hold exactly, and read back as numbers.
import type { ArrayOf, DType, StorageArray } from '../../lib/tensor/dtype.js';
import { allocate, parseDType } from '../../lib/tensor/dtype.js';

type FloatDType = 'float16' | 'bfloat16' | 'float32' | 'float64';

export const signed: readonly DType[] = [
  'int8',
  'int16',
  'int32',
  'int64',
  'float16',
  'bfloat16',
  'float32',
  'float64',
];
export const floats: readonly FloatDType[] = ['float16', 'bfloat16', 'float32', 'float64'];
export const halves: readonly DType[] = ['float16', 'bfloat16'];

const view = new DataView(new ArrayBuffer(4));

/** The bits of a float16: for integers of magnitude up to 2048. */
function halfBits(value: number): number {
  if (value === 0) return 0;
  const sign = value < 0 ? 0x8000 : 0;
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  const mantissa = (Math.abs(value) / 2 ** exponent - 1) * 1024;
  return sign | ((exponent + 15) << 10) | mantissa;
}

function halfValue(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  const magnitude =
    exponent === 0 ? mantissa * 2 ** -24 : (1 + mantissa / 1024) * 2 ** (exponent - 15);
  return bits & 0x8000 ? -magnitude : magnitude;
}

function bfloatBits(value: number): number {
  view.setFloat32(0, value);
  return view.getUint16(0);
}

function bfloatValue(bits: number): number {
  view.setUint16(0, bits);
  view.setUint16(2, 0);
  return view.getFloat32(0);
}

/** An array of `dtype` with these integers; what does not fit an integer type wraps. */
export function arrayOf<K extends DType>(dtype: K, values: readonly number[]): ArrayOf[K] {
  const array = allocate(parseDType(dtype), values.length);
  if (array instanceof BigInt64Array || array instanceof BigUint64Array) {
    values.forEach((value, i) => (array[i] = BigInt(value)));
  } else {
    const encode =
      dtype === 'float16' ? halfBits : dtype === 'bfloat16' ? bfloatBits : (x: number) => x;
    values.forEach((value, i) => (array[i] = encode(value)));
  }
  return array as ArrayOf[K];
}

/** The values of an array of `dtype`. */
export function valuesOf(dtype: DType, array: StorageArray): number[] {
  const decode = dtype === 'float16' ? halfValue : dtype === 'bfloat16' ? bfloatValue : Number;
  return Array.from(array as ArrayLike<number | bigint>, (value) => decode(Number(value)));
}
