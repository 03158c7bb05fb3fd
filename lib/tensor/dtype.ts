// Element types: their names, the numbers that cross into native code, and the TypedArrays that store them.
import { argumentError } from '../errors.js';
import type { StorageArray } from '../native/arrays.js';
import type { DeviceBuffer } from './device-buffer.js';

export type { StorageArray };

/** What the elements of an array are. */
export type DType =
  | 'int8'
  | 'uint8'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float16'
  | 'bfloat16'
  | 'float32'
  | 'float64';

/**
 * Element types of buffers on GPUs alone, with which NCCL computes (2.24 or newer; sums from compute capability 9.0) and
 * nothing else does. The host sees their bit patterns in a Uint8Array. e4m3 has no infinity.
 */
export type Float8DType = 'float8e4m3' | 'float8e5m2';

/** What the elements of a buffer on a GPU are. */
export type DeviceDType = DType | Float8DType;

/** In the order of native/core/kernels/dtype.h. */
export const dtypes = [
  'int8',
  'uint8',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'float16',
  'bfloat16',
  'float32',
  'float64',
] as const satisfies readonly DType[];

/** With those of GPUs alone, in the same order. */
export const deviceDtypes = [
  ...dtypes,
  'float8e4m3',
  'float8e5m2',
] as const satisfies readonly DeviceDType[];

/** The element types whose bits a Uint16Array carries: it must say which. */
export type HalfDType = 'float16' | 'bfloat16';

/** A Float16Array, on runtimes that have it; described by its shape, because older type libraries do not. */
export interface Float16ArrayLike extends ArrayBufferView {
  readonly [Symbol.toStringTag]: 'Float16Array';
  readonly BYTES_PER_ELEMENT: number;
  readonly length: number;
  [index: number]: number;
}

/** Every array that holds elements. A Uint16Array holds float16 or bfloat16 bit patterns and must be told which. */
export type NumericArray = StorageArray | Float16ArrayLike;

/** The array made for a dtype: what `allocate` and `allocShared` return. */
export interface ArrayOf {
  int8: Int8Array;
  uint8: Uint8Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int64: BigInt64Array;
  uint64: BigUint64Array;
  float16: Uint16Array;
  bfloat16: Uint16Array;
  float32: Float32Array;
  float64: Float64Array;
  float8e4m3: Uint8Array;
  float8e5m2: Uint8Array;
}

/** The element types an array type can hold. */
export type DTypeOf<A> =
  A extends DeviceBuffer<infer K>
    ? K
    : A extends Int8Array
      ? 'int8'
      : A extends Uint8Array
        ? 'uint8'
        : A extends Int32Array
          ? 'int32'
          : A extends Uint32Array
            ? 'uint32'
            : A extends BigInt64Array
              ? 'int64'
              : A extends BigUint64Array
                ? 'uint64'
                : A extends Uint16Array
                  ? HalfDType
                  : A extends Float32Array
                    ? 'float32'
                    : A extends Float64Array
                      ? 'float64'
                      : A extends Float16ArrayLike
                        ? 'float16'
                        : never;

/** Bytes of one element. */
export function elementSize(dtype: DeviceDType): number {
  return elementBytes[numbers[dtype]]!;
}

/** Bytes of one element, by dtype number. */
export const elementBytes: readonly number[] = [1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1];

const numbers: Readonly<Record<DeviceDType, number>> = {
  int8: 0,
  uint8: 1,
  int32: 2,
  uint32: 3,
  int64: 4,
  uint64: 5,
  float16: 6,
  bfloat16: 7,
  float32: 8,
  float64: 9,
  float8e4m3: 10,
  float8e5m2: 11,
};

/** Whether elements of a dtype number can be multiplied by weights: floats of 16 bits and more. */
export function isWeighable(dtype: number): boolean {
  return dtype >= numbers.float16 && dtype <= numbers.float64;
}

export function isFloat8(dtype: DeviceDType): dtype is Float8DType {
  return numbers[dtype] >= dtypes.length;
}

/** What a Uint16Array without a dtype gives. */
const ambiguous = -2;

/** The dtype number by the array's own tag, which subclasses (Buffer) and other realms share. */
function numberOfTag(tag: unknown): number {
  switch (tag) {
    case 'Float32Array':
      return 8;
    case 'Float64Array':
      return 9;
    case 'Int8Array':
      return 0;
    case 'Uint8Array':
      return 1;
    case 'Int32Array':
      return 2;
    case 'Uint32Array':
      return 3;
    case 'BigInt64Array':
      return 4;
    case 'BigUint64Array':
      return 5;
    case 'Float16Array':
      return 6;
    case 'Uint16Array':
      return ambiguous;
    default:
      return -1;
  }
}

const arrayKinds =
  'a TypedArray (Int8, Uint8, Int32, Uint32, BigInt64, BigUint64, Float32, Float64, or Uint16 with dtype ' +
  "'float16' or 'bfloat16')";

/**
 * The dtype number of an array, from the array alone or checked against `dtype`.
 *
 * @throws TypeError when it is no such array, or `dtype` contradicts it or is missing for a Uint16Array.
 */
export function dtypeNumber(array: unknown, dtype: string | undefined, name: string): number {
  const inferred = ArrayBuffer.isView(array)
    ? numberOfTag((array as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag])
    : -1;
  if (dtype === undefined && inferred >= 0) return inferred;
  if (inferred === -1) throw argumentError('ERR_INVALID_ARG_TYPE', name, arrayKinds, array);
  if (dtype === undefined) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'dtype',
      "'float16' or 'bfloat16' with a Uint16Array",
      dtype,
    );
  }
  const named = parseDType(dtype);
  const agrees = inferred === ambiguous ? named === 6 || named === 7 : named === inferred;
  if (!agrees) {
    const fitting = inferred === ambiguous ? "'float16' or 'bfloat16'" : `'${dtypes[inferred]}'`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'dtype', `${fitting} (what ${name} holds)`, dtype);
  }
  return named;
}

/**
 * The number of a dtype's name.
 *
 * @throws TypeError when there is none of that name, or only GPUs have it.
 */
export function parseDType(dtype: unknown, name = 'dtype'): number {
  return numberIn(dtypes, dtype, name);
}

/** As {@link parseDType}, with the types of GPUs alone. */
export function parseDeviceDType(dtype: unknown, name = 'dtype'): number {
  return numberIn(deviceDtypes, dtype, name);
}

function numberIn(known: readonly DeviceDType[], dtype: unknown, name: string): number {
  const number = (known as readonly unknown[]).indexOf(dtype);
  if (number >= 0) return number;
  throw argumentError('ERR_INVALID_ARG_VALUE', name, `one of ${known.join(', ')}`, dtype);
}

interface StorageConstructor {
  new (length: number): StorageArray;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): StorageArray;
}

const constructors: readonly StorageConstructor[] = [
  Int8Array,
  Uint8Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
  Uint16Array,
  Uint16Array,
  Float32Array,
  Float64Array,
  Uint8Array,
  Uint8Array,
];

/** A zeroed array of `count` elements, by dtype number. */
export function allocate(number: number, count: number): StorageArray {
  return new constructors[number]!(count);
}

/** The elements of a buffer as an array, by dtype number. */
export function arrayOver(number: number, buffer: ArrayBufferLike, count: number): StorageArray {
  return new constructors[number]!(buffer, 0, count);
}

/** A new array like `model` (a Float16Array stays one), of `count` elements. */
export function allocateLike(model: NumericArray, number: number, count: number): NumericArray {
  if (model[Symbol.toStringTag] !== 'Float16Array') return allocate(number, count);
  const Float16 = (model as unknown as { constructor: new (length: number) => Float16ArrayLike })
    .constructor;
  return new Float16(count);
}

/** The array as native code takes it: a Float16Array goes as a Uint16Array over the same memory. */
export function storageOf(array: NumericArray): StorageArray {
  if (array[Symbol.toStringTag] !== 'Float16Array') return array as StorageArray;
  return new Uint16Array(array.buffer, array.byteOffset, array.length);
}
