// The native surface of GPUs: native/binding/gpu. No meaning is checked there, only what memory safety needs.
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
  /** Of the display driver, for example '580.159.04'; null without NVML. */
  readonly driverRelease: string | null;
  readonly nvmlFile: string | null;
  /** Why there is no NVML; null when there is one. */
  readonly nvmlMissing: string | null;
  /** Whether the GPUs are in the mode of confidential computing, as far as NVML knows. */
  readonly isConfidential: boolean;
  readonly ncclFile: string | null;
  readonly ncclVersion: string | null;
  /** Why there is no NCCL; null when there is one. */
  readonly ncclMissing: string | null;
  /** Whether it has the float8 types. */
  readonly ncclFloat8: boolean;
  /** What memory it takes to know ahead: windows of all ranks, each rank's own alone, or none. */
  readonly ncclRegisters: 'symmetric' | 'local' | null;
  /** GRADLINK_NCCL_REGISTER=no. */
  readonly ncclRegisterOff: boolean;
}

/** A GPU of the machine, whether or not this process sees it. */
export interface NativeInstalledGpu {
  readonly pciBusId: string;
  readonly name: string | null;
  readonly uuid: string | null;
  /** In MIG mode: a process gets a part of it. */
  readonly isPartitioned: boolean;
}

/** How one GPU reaches another. */
export interface NativeGpuPeer {
  /** Whether its kernels and copies reach the other's memory directly. */
  readonly access: boolean;
  /** The driver's rank of the link, lower is faster; null without access. */
  readonly performanceRank: number | null;
  /** What they share on the way over PCIe: 'X' (itself), 'PIX', 'PXB', 'PHB', 'NODE', 'SYS'; null without NVML. */
  readonly path: string | null;
}

/**
 * An array on a GPU, or a part of one. Its memory is freed by dispose() of the buffer that was allocated, or when that
 * and its slices are collected; an operation that is pending still has it until it is done.
 */
export interface NativeDeviceBuffer {
  readonly device: number;
  readonly dtype: number;
  readonly length: number;
  /** What was allocated, the same object for all slices of it: overlaps are told by it and these bytes. */
  readonly buffer: object;
  readonly byteOffset: number;
  readonly byteLength: number;
  /** Known to NCCL, by the communicator that allocated it; null for memory that is not. */
  readonly registration: 'symmetric' | 'local' | null;
  readonly disposed: boolean;
  /** Another view of the same memory. */
  slice(begin: number, end: number): NativeDeviceBuffer;
  /** On the device's own thread; `from` may be a TypedArray or a buffer of any device, of the same length and dtype. */
  copyFrom(from: StorageArray | NativeDeviceBuffer): Promise<void>;
  copyTo(to: StorageArray): Promise<void>;
  /** Every element becomes the first of this array. */
  fill(element: StorageArray): Promise<void>;
  /** Idempotent. Of a slice: ends that only. */
  dispose(): void;
}

export interface NativeDeviceBufferClass {
  readonly prototype: NativeDeviceBuffer;
  /** What the memory holds is undefined. */
  alloc(device: number, dtype: number, count: number): NativeDeviceBuffer;
}

/** All load the driver, and throw ERR_BACKEND_UNAVAILABLE without one. */
export interface GpuNatives {
  readonly NativeDeviceBuffer: NativeDeviceBufferClass;
  gpuCount(): number;
  gpuInfo(ordinal: number): GpuInfo;
  /** The health alone, for reading it again; null without NVML. */
  gpuHealth(pciBusId: string): GpuHealth | null;
  /** XID errors since the look before, by NVIDIA's numbers; the first look is none yet. None where NVML does not tell. */
  gpuXids(pciBusId: string): number[];
  gpuPeer(from: number, to: number): NativeGpuPeer;
  gpuLibraries(): NativeGpuLibraries;
  /** None without NVML. */
  installedGpus(): NativeInstalledGpu[];
  /** Page-locked host memory; freed when the ArrayBuffer is collected. */
  allocPinned(bytes: number): ArrayBuffer;
}
