// The GPUs of this machine.
import { native } from '../native/load.js';
import type { GpuInfo } from '../native/gpu-info.js';

/**
 * The GPUs visible to this process (CUDA_VISIBLE_DEVICES), by ordinal. Loads the driver at the first call.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver or a GPU.
 */
export function gpuDevices(): GpuInfo[] {
  const addon = native();
  return Array.from({ length: addon.gpuCount() }, (_, ordinal) => addon.gpuInfo(ordinal));
}
