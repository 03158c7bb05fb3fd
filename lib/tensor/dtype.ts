// Element types: names, native numbers, and the TypedArrays that store them.
import { notOneOf } from '../checks.js';
import { argumentError } from '../errors.js';
import { assertOwnLength } from './own-length.js';
import type { StorageArray } from '../native/arrays.js';

export type { StorageArray };

interface StorageConstructor {
  readonly prototype: StorageArray;
  new (length: number): StorageArray;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): StorageArray;
}

/** The facts of an element type. */
interface Facts {
  /** Bytes per element. */
  readonly bytes: number;
  /** Its array; those of halves and float8s hold bit patterns. */
  readonly array: StorageConstructor;
  /** The tag of an array that can hold only this type. */
  readonly tag?: string;
  /** Whether elements can be multiplied by weights: floats of 16 bits and more. */
  readonly weighable?: true;
  /** Set if it exists only on GPUs or only in host memory. */
  readonly only?: 'gpus' | 'host';
}

/** All element types in the order of native/core/kernels/dtype.h; the index is the native number. */
const table = {
  int8: { bytes: 1, array: Int8Array, tag: 'Int8Array' },
  uint8: { bytes: 1, array: Uint8Array, tag: 'Uint8Array' },
  int32: { bytes: 4, array: Int32Array, tag: 'Int32Array' },
  uint32: { bytes: 4, array: Uint32Array, tag: 'Uint32Array' },
  int64: { bytes: 8, array: BigInt64Array, tag: 'BigInt64Array' },
  uint64: { bytes: 8, array: BigUint64Array, tag: 'BigUint64Array' },
  float16: { bytes: 2, array: Uint16Array, tag: 'Float16Array', weighable: true },
  bfloat16: { bytes: 2, array: Uint16Array, weighable: true },
  float32: { bytes: 4, array: Float32Array, tag: 'Float32Array', weighable: true },
  float64: { bytes: 8, array: Float64Array, tag: 'Float64Array', weighable: true },
  float8e4m3: { bytes: 1, array: Uint8Array, only: 'gpus' },
  float8e5m2: { bytes: 1, array: Uint8Array, only: 'gpus' },
  int16: { bytes: 2, array: Int16Array, tag: 'Int16Array', only: 'host' },
} as const satisfies Readonly<Record<string, Facts>>;

type Table = typeof table;
/** The element types whose facts are like `F`. */
type Having<F> = { [K in keyof Table]: Table[K] extends F ? K : never }[keyof Table];

/** The element types in host memory or on a GPU. */
export type AnyDType = keyof Table;

/** The element types of GPU buffers: no int16, which NCCL lacks. */
export type DeviceDType = Exclude<AnyDType, Having<{ readonly only: 'host' }>>;

/**
 * The float8 types of GPU buffers, which only NCCL computes with (2.24 or newer; sums from compute capability 9.0). In
 * host memory their bit patterns are in a Uint8Array. e4m3 has no infinity.
 */
export type Float8DType = Having<{ readonly only: 'gpus' }>;

/** The element types of host arrays. */
export type DType = Exclude<AnyDType, Float8DType>;

/** The element types in both host memory and GPU buffers. */
export type CommonDType = Extract<DType, DeviceDType>;

/** The element types stored in a Uint16Array, which must be named. */
export type HalfDType = Having<{ readonly array: Uint16ArrayConstructor }>;

/** A Float16Array, where the runtime has it; declared here because older type libraries lack it. */
export interface Float16ArrayLike extends ArrayBufferView {
  /** Distinguishes it from other arrays. */
  readonly [Symbol.toStringTag]: 'Float16Array';
  /** 2. */
  readonly BYTES_PER_ELEMENT: number;
  /** Number of elements. */
  readonly length: number;
  [index: number]: number;
}

/** Every array with elements. A Uint16Array holds float16 or bfloat16 bit patterns and needs a dtype. */
export type NumericArray = StorageArray | Float16ArrayLike;

/** The array of a dtype, as `allocate` and `allocShared` return it. */
export type ArrayOf = { [K in AnyDType]: Table[K]['array']['prototype'] };

/** All names, by number. */
export const dtypeNames = Object.freeze(Object.keys(table)) as readonly AnyDType[];

/** The types of GPU buffers. */
export const deviceDtypes: readonly DeviceDType[] = Object.freeze(
  dtypeNames.filter((dtype): dtype is DeviceDType => !isHostOnly(dtype)),
);

/** The types of host arrays. */
export const dtypes: readonly DType[] = Object.freeze(
  dtypeNames.filter((dtype): dtype is DType => !isFloat8(dtype)),
);

/** The types of both. */
export const commonDtypes: readonly CommonDType[] = Object.freeze(
  dtypeNames.filter((dtype): dtype is CommonDType => !isFloat8(dtype) && !isHostOnly(dtype)),
);

const facts: readonly Facts[] = dtypeNames.map((dtype) => table[dtype]);

/** Bytes of one element, by dtype number. */
export const elementBytes: readonly number[] = facts.map(({ bytes }) => bytes);

/** Bytes of one element. */
export function elementSize(dtype: AnyDType): number {
  return table[dtype].bytes;
}

/** Whether elements of a dtype number can be multiplied by weights: floats of 16 bits and more. */
export function isWeighable(dtype: number): boolean {
  return facts[dtype]?.weighable === true;
}

/** Whether only buffers on GPUs have it. */
export function isFloat8(dtype: AnyDType): dtype is Float8DType {
  return onlyPlace(dtype) === 'gpus';
}

/** Whether only arrays of the host have it. */
export function isHostOnly(dtype: AnyDType): dtype is Exclude<AnyDType, DeviceDType> {
  return onlyPlace(dtype) === 'host';
}

function onlyPlace(dtype: AnyDType): Facts['only'] {
  return (table[dtype] as Facts).only;
}

/** The result for a Uint16Array without a dtype. */
const ambiguous = -2;

const numbersOfTags: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ...facts.flatMap(({ tag }, number) => (tag === undefined ? [] : [[tag, number] as const])),
  ['Uint16Array', ambiguous],
]);
// Cached, because a lookup takes 2 % of an 8-byte call.
let lastTag: unknown;
let lastNumber = -1;

/** The dtype number by the array's own tag, which subclasses (Buffer) and other realms share; -1 for other values. */
function numberOfTag(tag: unknown): number {
  if (tag !== lastTag) {
    lastTag = tag;
    lastNumber = numbersOfTags.get(tag) ?? -1;
  }
  return lastNumber;
}

const float16 = dtypeNames.indexOf('float16');
const bfloat16 = dtypeNames.indexOf('bfloat16');

const arrayKinds =
  'a TypedArray (Int8, Uint8, Int16, Int32, Uint32, BigInt64, BigUint64, Float32, Float64, or Uint16 with dtype ' +
  "'float16' or 'bfloat16')";

/**
 * The dtype number of an array, from the array alone or checked against `dtype`.
 *
 * @throws TypeError if it is not such an array, or if `dtype` contradicts it or is missing for a Uint16Array.
 */
export function dtypeNumber(array: unknown, dtype: string | undefined, name: string): number {
  const inferred = ArrayBuffer.isView(array)
    ? numberOfTag((array as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag])
    : -1;
  if (inferred === -1) throw argumentError('ERR_INVALID_ARG_TYPE', name, arrayKinds, array);
  assertOwnLength(array as ArrayBufferView, name);
  if (dtype === undefined && inferred >= 0) return inferred;
  if (dtype === undefined) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'dtype',
      "'float16' or 'bfloat16' with a Uint16Array",
      dtype,
    );
  }
  const named = parseDType(dtype);
  const agrees =
    inferred === ambiguous ? named === float16 || named === bfloat16 : named === inferred;
  if (!agrees) {
    const fitting =
      inferred === ambiguous ? "'float16' or 'bfloat16'" : `'${dtypeNames[inferred]}'`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'dtype', `${fitting} (what ${name} holds)`, dtype);
  }
  return named;
}

/**
 * The number of a dtype's name.
 *
 * @throws TypeError if there is no such type, or only GPUs have it.
 */
export function parseDType(dtype: unknown, name = 'dtype'): number {
  return numberIn(dtypes, dtype, name, '');
}

/** As {@link parseDType}, including the GPU-only types. */
export function parseDeviceDType(dtype: unknown, name = 'dtype'): number {
  const wayOut = dtype === 'int16' ? '; int16 is for the host only, use int32' : '';
  return numberIn(deviceDtypes, dtype, name, wayOut);
}

function numberIn(
  known: readonly AnyDType[],
  dtype: unknown,
  name: string,
  wayOut: string,
): number {
  if ((known as readonly unknown[]).includes(dtype)) return dtypeNames.indexOf(dtype as AnyDType);
  throw notOneOf(dtype, name, known, { more: wayOut });
}

/** A zeroed array of `count` elements, by dtype number. */
export function allocate(number: number, count: number): StorageArray {
  return new facts[number]!.array(count);
}

/** A view of a buffer from byte `offset` on, by dtype number. */
export function arrayOver(
  number: number,
  buffer: ArrayBufferLike,
  count: number,
  offset = 0,
): StorageArray {
  return new facts[number]!.array(buffer, offset, count);
}

/** A new array of `count` elements like `model` (a Float16Array stays one). */
export function allocateLike(model: NumericArray, number: number, count: number): NumericArray {
  if (model[Symbol.toStringTag] !== 'Float16Array') return allocate(number, count);
  const Float16 = (model as unknown as { constructor: new (length: number) => Float16ArrayLike })
    .constructor;
  return new Float16(count);
}

/** The native array: a Float16Array becomes a Uint16Array over the same memory. */
export function storageOf(array: NumericArray): StorageArray {
  if (array[Symbol.toStringTag] !== 'Float16Array') return array as StorageArray;
  return new Uint16Array(array.buffer, array.byteOffset, array.length);
}
