// Checks that a rank's arrays are in host memory, or on the rank's GPU.
import { argumentError } from '../../errors.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { describeBuffer, isDeviceBuffer } from '../../tensor/device-buffer.js';
import type { Group } from './types.js';

/**
 * @param held - index of the rank among those held here
 * @throws TypeError that names the array's place and the right one
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
