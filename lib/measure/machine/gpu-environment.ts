// The GPUs and libraries of a run, for reports.
import { native } from '../../native/load.js';
import type { NativeGpuInfo } from '../../native/gpu.js';
import type { GpuDevice, GpuEnvironment } from '../../results/result.js';

/**
 * The used GPUs' facts for a report.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver
 */
export function describeGpus(gpus: readonly NativeGpuInfo[]): GpuEnvironment {
  const { driverVersion, driverRelease, ncclVersion, nvmlMissing } = native().gpuLibraries();
  return {
    cudaVersion: `${Math.floor(driverVersion / 1000)}.${Math.floor((driverVersion % 1000) / 10)}`,
    driverRelease,
    ncclVersion,
    nvmlMissing,
    devices: gpus.map(deviceOf),
  };
}

function deviceOf(gpu: NativeGpuInfo): GpuDevice {
  const { health } = gpu;
  const active = health?.links.filter((link) => link.active) ?? [];
  return {
    ordinal: gpu.ordinal,
    name: gpu.name,
    uuid: gpu.uuid,
    pciBusId: gpu.pciBusId,
    memoryBytes: gpu.memoryBytes,
    computeCapability: gpu.computeCapability,
    numaNode: health?.numaNode ?? null,
    pcieGeneration: health?.maxPcieGeneration ?? null,
    pcieWidth: health?.maxPcieWidth ?? null,
    links: health?.links.length ?? null,
    activeLinks: health === null ? null : active.length,
    linkBytesPerSecond: active[0]?.bytesPerSecond ?? null,
  };
}
