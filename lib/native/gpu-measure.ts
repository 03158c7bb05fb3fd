// The native interface of GPU measurements: native/binding/measure/gpu_measure.cc.
import type { NativeGpuHealth } from './gpu.js';
import type { NativeWrongElement } from './measure.js';

/** Page-locked host memory, in place of a GPU's ordinal. */
export const nativeHostMemory = -1;

/** One copy; `by` is the GPU that executes it, one of its two ends. */
export interface NativeGpuCopy {
  readonly from: number;
  readonly to: number;
  readonly by: number;
  /** By the multiprocessors instead of a copy engine. */
  readonly kernel: boolean;
}

export interface NativeGpuCopiesOptions {
  /** Each has its own source and target; all begin at once. */
  readonly copies: readonly NativeGpuCopy[];
  /** Number of timed copies; the others are background load, with twice as many copies. */
  readonly measured: number;
  /** Per copy; a multiple of 16 for the multiprocessors. */
  readonly bytes: number;
  /** Copies before each sample. */
  readonly warmup: number;
  /** Copies per sample. */
  readonly loops: number;
  readonly samples: number;
  /** Compare all data after every sample. */
  readonly verify: boolean;
  /** Whether GPUs access each other's memory directly; otherwise the driver stages. */
  readonly peerAccess: boolean;
  /** Allocate host memory near the GPU. */
  readonly affinity: boolean;
  /** Read the GPUs' health under load. */
  readonly health: boolean;
  /** Also time single copies of the first measured one by the host's clock. */
  readonly hostTimes: boolean;
  /** Per sample. */
  readonly timeoutMs: number;
}

export interface NativeGpuCopies {
  /** Per copy, by its own start and end: a list for each measured one, with a value per sample. */
  readonly seconds: readonly Float64Array[];
  /** From the common start to the end of the last measured copy, divided by `loops`; a value per sample. */
  readonly spanSeconds: Float64Array;
  /** Host time to queue one copy of the first measured one; a value per sample. */
  readonly issueSeconds: Float64Array;
  /** Host time from queueing a copy until its end is known; empty without hostTimes. */
  readonly hostSeconds: Float64Array;
  /** Wrong elements of four bytes. */
  readonly wrong: number;
  /** The first one, with the copy's number as its rank; null if a second comparison found no error. */
  readonly firstWrong: NativeWrongElement | null;
  /** Per copy: whether its GPU accessed both memories directly. */
  readonly direct: readonly boolean[];
  /** Per copy: whether its host memory was allocated near its GPU. */
  readonly near: readonly boolean[];
  /** Under load; without GPUs that NVML does not know. */
  readonly health: readonly { readonly gpu: number; readonly health: NativeGpuHealth }[];
}

export interface NativeGpuLatencyOptions {
  /** The GPU that reads. */
  readonly by: number;
  /** The owner of the memory; nativeHostMemory for the host. */
  readonly memory: number;
  /** Nodes of the linked list, `stride` bytes apart. */
  readonly nodes: number;
  readonly stride: number;
  /** Dependent loads per sample, over all multiprocessors. */
  readonly steps: number;
  readonly samples: number;
  readonly affinity: boolean;
  readonly timeoutMs: number;
}

export interface NativeGpuLatency {
  /** Per load, the mean of all multiprocessors; a value per sample. */
  readonly seconds: Float64Array;
  /** The same for each multiprocessor, the mean of all samples. */
  readonly multiprocessorSeconds: Float64Array;
  /** Samples that ended at a wrong node. */
  readonly wrong: number;
  readonly near: boolean;
}

/** Numbers of the loops in native/measure/gpu/kernel_times.h. */
export const nativeGpuLoops = { copy: 0, sum: 1, sgdMomentum: 2 } as const;

export interface NativeGpuLoopOptions {
  readonly loop: number;
  readonly gpu: number;
  /** float32 elements per array. */
  readonly count: number;
  /** Arrays to sum; ignored by copy. */
  readonly arrays: number;
  readonly warmup: number;
  /** Passes per sample. */
  readonly loops: number;
  readonly samples: number;
  readonly timeoutMs: number;
}

export interface NativeGpuLoop {
  /** Per pass, a value per sample. */
  readonly seconds: Float64Array;
  /** Bytes read and written per pass. */
  readonly bytes: number;
}

/** All run on one thread of the environment, one after another. */
export interface GpuMeasureNatives {
  gpuCopies(options: NativeGpuCopiesOptions): Promise<NativeGpuCopies>;
  gpuLatency(options: NativeGpuLatencyOptions): Promise<NativeGpuLatency>;
  gpuLoop(options: NativeGpuLoopOptions): Promise<NativeGpuLoop>;
}
