// The native surface of measuring GPUs: native/binding/measure/gpu_measure.cc.
import type { NativeGpuHealth } from './gpu.js';
import type { NativeWrongElement } from './measure.js';

/** Page-locked host memory, where a GPU's ordinal may stand. */
export const nativeHostMemory = -1;

/** One copy; `by` is the GPU that makes it, one of the two it goes between. */
export interface NativeGpuCopy {
  readonly from: number;
  readonly to: number;
  readonly by: number;
  /** With the multiprocessors rather than a copy engine. */
  readonly kernel: boolean;
}

export interface NativeGpuCopiesOptions {
  /** Each has a source and a target of its own; all begin at the same moment. */
  readonly copies: readonly NativeGpuCopy[];
  /** The first so many are timed; the others disturb them, and make twice as many copies. */
  readonly measured: number;
  /** Of one copy; a multiple of 16 for the multiprocessors. */
  readonly bytes: number;
  /** Copies before each sample. */
  readonly warmup: number;
  /** Copies that a sample times together. */
  readonly loops: number;
  readonly samples: number;
  /** Compare everything after every sample. */
  readonly verify: boolean;
  /** Whether GPUs may reach each other's memory; false: the driver stages. */
  readonly peerAccess: boolean;
  /** Allocate host memory on the cores nearest to the GPU. */
  readonly affinity: boolean;
  /** Read how the GPUs are while they are busy. */
  readonly health: boolean;
  /** Time single copies of the first measured one by the host too. */
  readonly hostTimes: boolean;
  /** Of one sample. */
  readonly timeoutMs: number;
}

export interface NativeGpuCopies {
  /** Of one copy, by its own start and end: a list for each measured one, a value a sample. */
  readonly seconds: readonly Float64Array[];
  /** From the common start to the end of the last measured copy, by `loops`; a value a sample. */
  readonly spanSeconds: Float64Array;
  /** By the host's clock: to queue one copy of the first measured one; a value a sample. */
  readonly issueSeconds: Float64Array;
  /** By the host's clock: from queueing one until it is known to have ended; empty without hostTimes. */
  readonly hostSeconds: Float64Array;
  /** Elements of four bytes that were wrong. */
  readonly wrong: number;
  /** The first of them, its rank the number of the copy; null where a second look found all right. */
  readonly firstWrong: NativeWrongElement | null;
  /** By copy: whether its GPU reached both memories itself. */
  readonly direct: readonly boolean[];
  /** By copy: whether its host memory was allocated near its GPU. */
  readonly near: readonly boolean[];
  /** While busy; without those that NVML does not know. */
  readonly health: readonly { readonly gpu: number; readonly health: NativeGpuHealth }[];
}

export interface NativeGpuLatencyOptions {
  /** The GPU that reads. */
  readonly by: number;
  /** Whose memory; nativeHostMemory for the host's. */
  readonly memory: number;
  /** Of the list that is followed, `stride` bytes apart. */
  readonly nodes: number;
  readonly stride: number;
  /** Loads of one sample, over all multiprocessors, each of which needs the one before. */
  readonly steps: number;
  readonly samples: number;
  readonly affinity: boolean;
  readonly timeoutMs: number;
}

export interface NativeGpuLatency {
  /** Of one load, the mean of all multiprocessors, a value a sample. */
  readonly seconds: Float64Array;
  /** The same of each multiprocessor, the mean of all samples. */
  readonly multiprocessorSeconds: Float64Array;
  /** Samples that ended in a wrong place. */
  readonly wrong: number;
  readonly near: boolean;
}

/** Numbers of the loops: native/measure/gpu/kernel_times.h. */
export const nativeGpuLoops = { copy: 0, sum: 1, sgdMomentum: 2 } as const;

export interface NativeGpuLoopOptions {
  readonly loop: number;
  readonly gpu: number;
  /** float32 elements of one array. */
  readonly count: number;
  /** Arrays that are summed; copy ignores it. */
  readonly arrays: number;
  readonly warmup: number;
  /** Passes that a sample times together. */
  readonly loops: number;
  readonly samples: number;
  readonly timeoutMs: number;
}

export interface NativeGpuLoop {
  /** Of one pass, a value a sample. */
  readonly seconds: Float64Array;
  /** Bytes that one pass reads and writes. */
  readonly bytes: number;
}

/** All on one thread of the environment, one after the other. */
export interface GpuMeasureNatives {
  gpuCopies(options: NativeGpuCopiesOptions): Promise<NativeGpuCopies>;
  gpuLatency(options: NativeGpuLatencyOptions): Promise<NativeGpuLatency>;
  gpuLoop(options: NativeGpuLoopOptions): Promise<NativeGpuLoop>;
}
