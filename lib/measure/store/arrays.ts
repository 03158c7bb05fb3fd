// The arrays of a store's run: in host memory, or copies on GPUs.
import { DeviceBuffer } from '../../tensor/device-buffer.js';
import type { KVStore } from '../../kvstore/kvstore.js';
import type { GradientArray, GradientType } from './gradients.js';
import { allocateByDevice } from './memory.js';

export type StoreArray = GradientArray | DeviceBuffer;

export interface StoreArrays extends AsyncDisposable {
  /** gradients[array][device]. */
  readonly gradients: readonly (readonly StoreArray[])[];
  /** outs[array][device]. */
  readonly outs: readonly (readonly StoreArray[])[];
  /** The pulled values in host memory, valid until the next call. */
  results(): Promise<readonly (readonly GradientArray[])[]>;
}

/**
 * @param gradients the pushed values in host memory
 * @param gpus the GPU of each device; null for CPU devices
 * @param store allocates arrays that its servers read in place
 * @throws GradlinkError ERR_OUT_OF_MEMORY naming the full GPU
 */
export async function openStoreArrays(
  dtype: GradientType,
  gradients: readonly (readonly GradientArray[])[],
  gpus: readonly number[] | null,
  store: KVStore,
): Promise<StoreArrays> {
  const like = ({ length }: GradientArray): GradientArray => store.allocShared(dtype, length);
  const lengths = gradients.map(([first]) => first?.length ?? 0);
  const outs =
    store.numServers > 0
      ? gradients.map((devices) => devices.map(like))
      : allocateByDevice(dtype, lengths, gradients[0]?.length ?? 0);
  if (gpus === null) {
    // Only this process reads an array that is summed with others.
    const pushed = gradients.map((devices) =>
      devices.length > 1 || store.numServers === 0
        ? devices
        : devices.map((one) => copied(one, like)),
    );
    return {
      gradients: pushed,
      outs,
      results: () => Promise.resolve(outs),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }
  const buffers: DeviceBuffer[] = [];
  const dispose = (): Promise<void> => {
    for (const buffer of buffers) buffer.dispose();
    return Promise.resolve();
  };
  const bufferLike = (array: GradientArray, device: number): DeviceBuffer => {
    const buffer = DeviceBuffer.alloc(gpus[device] ?? 0, dtype, array.length);
    buffers.push(buffer);
    return buffer;
  };
  try {
    const there = outs.map((devices) => devices.map(bufferLike));
    const pushed = gradients.map((devices) => devices.map(bufferLike));
    await Promise.all(
      pushed.flatMap((devices, array) =>
        devices.map((buffer, device) => buffer.copyFrom(gradients[array]?.[device] as never)),
      ),
    );
    const results = async (): Promise<typeof outs> => {
      await Promise.all(
        there.flatMap((devices, array) =>
          devices.map((buffer, device) => buffer.copyTo(outs[array]?.[device] as never)),
        ),
      );
      return outs;
    };
    return { gradients: pushed, outs: there, results, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function copied(array: GradientArray, like: (one: GradientArray) => GradientArray): GradientArray {
  const copy = like(array);
  copy.set(array);
  return copy;
}
