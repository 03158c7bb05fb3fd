// The native surface of GPUs: native/binding/gpu_*.cc. No meaning is checked there, only what memory safety needs.
import type { StorageArray } from '../tensor/dtype.js';
import type { NativeCommunicator } from './communicator.js';
import type { NativeKVStore } from './kvstore.js';

/** What one GPU is and how it is; null where the driver or NVML does not say. */
export interface NativeGpuInfo {
  readonly ordinal: number;
  readonly name: string;
  readonly uuid: string | null;
  readonly pciBusId: string;
  readonly memoryBytes: number;
  readonly computeCapability: string;
  readonly multiprocessors: number;
  readonly l2Bytes: number;
  readonly copyEngines: number;
  readonly memoryBusBits: number;
  readonly memoryClockKHz: number;
  readonly health: NativeGpuHealth | null;
}

/** From NVML, at the moment of the call. */
export interface NativeGpuHealth {
  readonly numaNode: number | null;
  readonly pcieGeneration: number | null;
  readonly pcieWidth: number | null;
  readonly maxPcieGeneration: number | null;
  readonly maxPcieWidth: number | null;
  readonly smClockMHz: number | null;
  readonly maxSmClockMHz: number | null;
  readonly memoryClockMHz: number | null;
  readonly temperatureC: number | null;
  readonly powerW: number | null;
  /** Names, for example 'softwarePowerCap'; empty when nothing holds the clocks back. */
  readonly throttleReasons: readonly string[] | null;
  readonly eccErrors: number | null;
  readonly pcieReplays: number | null;
  readonly links: readonly NativeLink[];
}

export interface NativeLink {
  readonly index: number;
  readonly active: boolean;
  readonly version: string | null;
  /** One direction. */
  readonly bytesPerSecond: number | null;
  /** PCI bus id of the other end; null for a switch or when unknown. */
  readonly remotePciBusId: string | null;
  readonly remoteIsSwitch: boolean;
  readonly errors: number | null;
}

export interface NativeGpuLibraries {
  readonly driverFile: string;
  /** 13000 is CUDA 13.0. */
  readonly driverVersion: number;
  /** Of the display driver, for example '580.159.04'; null without NVML. */
  readonly driverRelease: string | null;
  readonly ncclFile: string | null;
  readonly ncclVersion: string | null;
  /** Why there is no NCCL; null when there is one. */
  readonly ncclMissing: string | null;
}

/** An array on a GPU. Freed by dispose() or when collected. */
export interface NativeDeviceBuffer {
  readonly device: number;
  readonly dtype: number;
  readonly length: number;
  readonly disposed: boolean;
  /** Another view of the same memory. */
  slice(begin: number, end: number): NativeDeviceBuffer;
  /** Queued on the device's own stream; `from` may be a TypedArray or a buffer of any device. */
  copyFrom(from: StorageArray | NativeDeviceBuffer): Promise<void>;
  copyTo(to: StorageArray): Promise<void>;
  /** Every element becomes this number (a bigint for 64-bit integers). */
  fill(value: number | bigint): Promise<void>;
  dispose(): void;
}

export interface NativeNcclOptions {
  readonly gpus: readonly number[];
  readonly timeoutMs: number;
}

export const nativeGpuMerges = { automatic: 0, nccl: 1, peer: 2, host: 3 } as const;

export interface GpuNatives {
  readonly NativeDeviceBuffer: {
    readonly prototype: NativeDeviceBuffer;
    alloc(device: number, dtype: number, count: number): NativeDeviceBuffer;
  };
  /** Loads the driver; throws ERR_BACKEND_UNAVAILABLE without one. */
  gpuCount(): number;
  gpuInfo(ordinal: number): NativeGpuInfo;
  gpuLibraries(): NativeGpuLibraries;
  /** From one GPU to another: whether it reaches the memory directly, and NVML's common ancestor ('PIX', 'NODE', ...). */
  gpuPeer(
    from: number,
    to: number,
  ): { readonly access: boolean; readonly performanceRank: number | null; readonly path: string | null };
  /** Page-locked host memory; freed when the ArrayBuffer is collected. */
  allocPinned(bytes: number): ArrayBuffer;
  /** One communicator that holds a rank for each GPU. */
  openNccl(options: NativeNcclOptions): Promise<NativeCommunicator>;
  ncclUniqueId(): Uint8Array;
  joinNccl(
    id: Uint8Array,
    rank: number,
    size: number,
    gpu: number,
    timeoutMs: number,
  ): Promise<NativeCommunicator>;
  openGpuStore(gpus: readonly number[], merge: number): NativeKVStore;
}
