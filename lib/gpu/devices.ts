// The GPUs of this machine.
import { native } from '../native.js';
import type { NativeGpuHealth, NativeGpuInfo, NativeLink } from '../native/gpu.js';

/** What one GPU is, and how it is at the moment; null where neither the driver nor NVML says. */
export type GpuInfo = NativeGpuInfo;
/** From NVML. An idle GPU runs with lower clocks and a slower PCIe link than a busy one: read it under load. */
export type GpuHealth = NativeGpuHealth;
/** One NVLink of a GPU. */
export type GpuLink = NativeLink;

/**
 * The GPUs that this process sees (CUDA_VISIBLE_DEVICES), by the driver's ordinal. Loads the driver at the first call.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver or a GPU.
 */
export function devices(): GpuInfo[] {
  const addon = native();
  return Array.from({ length: addon.gpuCount() }, (_, ordinal) => addon.gpuInfo(ordinal));
}
