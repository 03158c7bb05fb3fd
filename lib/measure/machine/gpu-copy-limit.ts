// The limit within a GPU: its memory's copy bandwidth, measured in the same run.
import { mebibyte } from '../../results/units.js';
import { native } from '../../native/load.js';
import { nativeGpuLoops } from '../../native/gpu-measure.js';

const smallestArray = 64 * mebibyte;
const largestArray = 256 * mebibyte;
// Four times the cache, so that it holds less than a quarter of an array.
const cacheMultiple = 4;
const floatBytes = 4;

export interface GpuCopyLimit {
  /** Bytes read plus bytes written per second. */
  readonly copyBytesPerSecond: number;
}

/**
 * Measures the driver's copies within a GPU: the best of four samples, because a limit is the undisturbed rate.
 *
 * @throws GradlinkError ERR_OUT_OF_MEMORY if the GPU has no room for two arrays of 64 MiB
 */
export async function measureGpuCopyLimit(gpu: number): Promise<GpuCopyLimit> {
  const addon = native();
  const beyondCache = addon.gpuInfo(gpu).l2Bytes * cacheMultiple;
  const bytesOfArray = Math.min(Math.max(smallestArray, beyondCache), largestArray);
  const { seconds, bytes } = await addon.gpuLoop({
    loop: nativeGpuLoops.copy,
    gpu,
    count: Math.floor(bytesOfArray / floatBytes),
    arrays: 1,
    warmup: 1,
    loops: 2,
    samples: 4,
    timeoutMs: 60_000,
  });
  return { copyBytesPerSecond: bytes / Math.min(...seconds) };
}
