// Validates the arguments of init.
import { argumentError } from '../errors.js';
import { dtypeNumber } from '../tensor/any-array.js';
import type { AnyArray } from '../tensor/any-array.js';
import { dtypeNames, isFloat8, isHostOnly } from '../tensor/dtype.js';
import type { AnyDType } from '../tensor/dtype.js';
import type { DType } from '../tensor/dtype.js';
import { assertFixedLength } from '../tensor/memory.js';
import { optionNames } from '../checks.js';
import { assertPlace } from './arrays.js';
import { ofCalls, pairsOf } from './calls.js';
import type { Keys, StoreCallOptions } from './calls.js';
import type { StoreDevices } from './devices.js';
import { duplicateKey } from './keys.js';
import type { Key, KeyTable } from './keys.js';
import { RowSparse } from './row-sparse.js';
import { rowLengthOf } from '../tensor/shape.js';

/**
 * One value for one key, a list for several: TypedArrays, DeviceBuffers on the store's GPUs, or {@link RowSparse}
 * arrays, whose other rows are 0.
 */
export type InitValues<K extends Keys> = K extends readonly Key[]
  ? readonly (AnyArray | RowSparse)[]
  : AnyArray | RowSparse;

/** Options of init. */
export interface InitOptions {
  /** The shape of the value, or of each key's: it defines the rows. Its product is the length. */
  shape?: readonly number[] | readonly (readonly number[] | undefined)[] | undefined;
  /** The type of a Uint16Array. */
  dtype?: DType | undefined;
}

export const initNames = optionNames<InitOptions>({ shape: true, dtype: true });

export const broadcastNames = optionNames<InitOptions & StoreCallOptions>({
  shape: true,
  dtype: true,
  ...ofCalls,
});

/** A key to create. */
export interface NewKey {
  readonly key: Key;
  readonly value: AnyArray;
  readonly dtype: number;
  readonly rowLength: number;
}

/** A list of shapes, some perhaps undefined, rather than one shape (a list of numbers). */
function isListOfShapes(shapes: InitOptions['shape']): shapes is readonly (readonly number[])[] {
  return Array.isArray(shapes) && !shapes.some((one) => typeof one === 'number');
}

/** @throws TypeError for a repeated or existing key, one of the wrong kind, and for invalid values */
export function readInit(
  table: KeyTable,
  keys: unknown,
  values: unknown,
  options: InitOptions,
  devices: StoreDevices,
): NewKey[] {
  const isList = Array.isArray(keys);
  const seen = new Set<Key>();
  return pairsOf(keys, values, 'values').map(([given, one], index) => {
    const key = table.check(given);
    const [first] = seen;
    if (first !== undefined && typeof first !== typeof key) {
      const kind = typeof first === 'number' ? 'ints' : 'strings';
      throw argumentError('ERR_INVALID_ARG_TYPE', 'keys', `${kind} only, as the first`, key);
    }
    if (table.has(key) || seen.has(key)) throw duplicateKey(key);
    seen.add(key);
    const value: unknown = one instanceof RowSparse ? one.toDense() : one;
    assertPlace(value, 'value', devices);
    const dtype = dtypeNumber(value, options.dtype, 'value');
    assertType(dtypeNames[dtype]!, devices);
    const array = value as AnyArray;
    assertFixedLength(array, 'value');
    const shapes = options.shape;
    const own: unknown = isList && isListOfShapes(shapes) ? shapes[index] : shapes;
    const shape: unknown = own === undefined && one instanceof RowSparse ? one.shape : own;
    return { key, value: array, dtype, rowLength: rowLengthOf(shape, array.length) };
  });
}

function assertType(dtype: AnyDType, { gpus }: StoreDevices): void {
  const expected = 'a type that stores support';
  if (isFloat8(dtype)) {
    const text = `${dtype}, which only NCCL adds`;
    throw argumentError('ERR_INVALID_ARG_TYPE', 'value', expected, { text });
  }
  if (isHostOnly(dtype) && gpus !== null) {
    const text = `${dtype}, which GPUs cannot add: use int32, or CPU devices`;
    throw argumentError('ERR_INVALID_ARG_TYPE', 'value', `${expected} on GPUs`, { text });
  }
}
