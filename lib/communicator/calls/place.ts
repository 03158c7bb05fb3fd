// Where the arrays of a rank must be: in the memory of the host, or on the GPU that is the rank.
import { argumentError } from '../../errors.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { describeBuffer, isDeviceBuffer } from '../../tensor/device-buffer.js';
import type { Group } from './types.js';

/**
 * @param held - which of the ranks held here
 * @throws TypeError that names where the array is and where it should be.
 */
export function assertPlace(group: Group, held: number, array: AnyArray, name: string): void {
  const gpu = group.gpus[held];
  const isBuffer = isDeviceBuffer(array);
  if (gpu === undefined ? !isBuffer : isBuffer && array.device === gpu) return;
  const several = group.heldRanks.length > 1;
  const whose = several ? `${name} of rank ${group.heldRanks[held]!}` : name;
  const expected =
    gpu === undefined
      ? "a TypedArray (this communicator's ranks are not GPUs: see Communicator.nccl)"
      : `a DeviceBuffer on gpu:${gpu}`;
  throw argumentError(
    'ERR_INVALID_ARG_TYPE',
    whose,
    expected,
    isBuffer ? { text: describeBuffer(array) } : array,
  );
}
