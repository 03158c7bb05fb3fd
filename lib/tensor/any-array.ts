// Arrays in host memory or on a GPU. Telling them apart does not load CUDA.
import { argumentError } from '../errors.js';
import type { NativeBuffer } from '../native/communicator.js';
import { DeviceBuffer, isDeviceBuffer, usable } from './device-buffer.js';
import {
  allocateLike as allocateHostLike,
  dtypeNames,
  dtypeNumber as hostDtypeNumber,
  parseDeviceDType,
  storageOf as hostStorageOf,
} from './dtype.js';
import type { ArrayOf, DType, Float16ArrayLike, NumericArray } from './dtype.js';

/** An array in host memory or on a GPU. */
export type AnyArray = NumericArray | DeviceBuffer;

/** The element types an array type can hold. */
export type DTypeOf<A> =
  A extends DeviceBuffer<infer K>
    ? K
    : A extends Float16ArrayLike
      ? 'float16'
      : { [K in DType]: A extends ArrayOf[K] ? K : never }[DType];

/**
 * The dtype number of an array, from the array alone or checked against `dtype`.
 *
 * @throws TypeError if it is not an array or disposed, or if `dtype` contradicts it or is missing for a Uint16Array.
 */
export function dtypeNumber(array: unknown, dtype: string | undefined, name: string): number {
  if (!isDeviceBuffer(array)) return hostDtypeNumber(array, dtype, name);
  usable(array, name);
  if (dtype !== undefined && dtypeNames[parseDeviceDType(dtype)] !== array.dtype) {
    const expected = `'${array.dtype}' (what ${name} holds)`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'dtype', expected, dtype);
  }
  return dtypeNames.indexOf(array.dtype);
}

export function storageOf(array: AnyArray): NativeBuffer {
  return isDeviceBuffer(array) ? usable(array, 'data') : hostStorageOf(array);
}

/** A new array like `model`, on the same GPU or in host memory. */
export function allocateLike(model: AnyArray, number: number, count: number): AnyArray {
  return isDeviceBuffer(model)
    ? DeviceBuffer.alloc(model.device, model.dtype, count)
    : allocateHostLike(model, number, count);
}
