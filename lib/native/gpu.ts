// The native interface of GPUs: native/binding/gpu. It validates only what memory safety needs.
import type { GpuHealth, GpuInfo } from './gpu-info.js';
import type { StorageArray } from './arrays.js';

export type {
  GpuHealth as NativeGpuHealth,
  GpuInfo as NativeGpuInfo,
  GpuLink as NativeLink,
} from './gpu-info.js';

export interface NativeGpuLibraries {
  readonly driverFile: string;
  /** 13000 is CUDA 13.0. */
  readonly driverVersion: number;
  /** The display driver's version, for example '580.159.04'; null without NVML. */
  readonly driverRelease: string | null;
  readonly nvmlFile: string | null;
  /** Why NVML is missing, or null. */
  readonly nvmlMissing: string | null;
  /** Whether the GPUs are in the mode of confidential computing, as far as NVML knows. */
  readonly isConfidential: boolean;
  readonly ncclFile: string | null;
  readonly ncclVersion: string | null;
  /** Why NCCL is missing, or null. */
  readonly ncclMissing: string | null;
  /** Whether it supports float8 types. */
  readonly ncclFloat8: boolean;
  /** The memory registration that it supports: symmetric, local only, or none. */
  readonly ncclRegisters: 'symmetric' | 'local' | null;
  /** GRADLINK_NCCL_REGISTER=no. */
  readonly ncclRegisterOff: boolean;
}

/** A GPU of the machine, visible to this process or not. */
export interface NativeInstalledGpu {
  readonly pciBusId: string;
  readonly name: string | null;
  readonly uuid: string | null;
  /** In MIG mode: processes get partitions. */
  readonly isPartitioned: boolean;
}

/** The connection of one GPU to another. */
export interface NativeGpuPeer {
  /** Whether its kernels and copies access the other's memory directly. */
  readonly access: boolean;
  /** The driver's performance rank, lower is faster; null without access. */
  readonly performanceRank: number | null;
  /** Their common point over PCIe: 'X' (itself), 'PIX', 'PXB', 'PHB', 'NODE', 'SYS'; null without NVML. */
  readonly path: string | null;
}

/**
 * An array on a GPU, or a slice. Its memory is freed by dispose() of the allocated buffer, or when that and its slices
 * are garbage collected, after pending operations.
 */
export interface NativeDeviceBuffer {
  readonly device: number;
  readonly dtype: number;
  readonly length: number;
  /** The allocation, the same object for all its slices; overlaps are detected by it and the byte range. */
  readonly buffer: object;
  readonly byteOffset: number;
  readonly byteLength: number;
  /** Its NCCL registration by the allocating communicator; null if not registered. */
  readonly registration: 'symmetric' | 'local' | null;
  readonly disposed: boolean;
  slice(begin: number, end: number): NativeDeviceBuffer;
  /**
   * Runs on the device's own thread; `from` may be a TypedArray or a buffer of any device, of the same length and
   * dtype.
   */
  copyFrom(from: StorageArray | NativeDeviceBuffer): Promise<void>;
  copyTo(to: StorageArray): Promise<void>;
  /** Sets all elements to the first of this array. */
  fill(element: StorageArray): Promise<void>;
  /** Idempotent. For a slice, ends only the slice. */
  dispose(): void;
}

export interface NativeDeviceBufferClass {
  readonly prototype: NativeDeviceBuffer;
  /** The content is undefined. */
  alloc(device: number, dtype: number, count: number): NativeDeviceBuffer;
}

/** All functions load the driver, and throw ERR_BACKEND_UNAVAILABLE without one. */
export interface GpuNatives {
  readonly NativeDeviceBuffer: NativeDeviceBufferClass;
  gpuCount(): number;
  gpuInfo(ordinal: number): GpuInfo;
  /** Reads the health again; null without NVML. */
  gpuHealth(pciBusId: string): GpuHealth | null;
  /** XID errors since the previous call, by NVIDIA's numbers; empty at the first call and without NVML. */
  gpuXids(pciBusId: string): number[];
  gpuPeer(from: number, to: number): NativeGpuPeer;
  gpuLibraries(): NativeGpuLibraries;
  /** Empty without NVML. */
  installedGpus(): NativeInstalledGpu[];
  /** Page-locked host memory, freed by garbage collection. */
  allocPinned(bytes: number): ArrayBuffer;
}
