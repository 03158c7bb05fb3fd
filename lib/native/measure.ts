// The native interface of measurements: native/binding/measure/measure_wrap.cc. Dtypes and reduce ops have the numbers
// of native/core/kernels/dtype.h and native/core/kernels/reduce_op.h.
import type { StorageArray } from './arrays.js';
import type { NativeTimedName } from '../collectives.js';
import type { NativeCommunicator } from './communicator.js';

/** Numbers of the loops; native/measure/memory_bandwidth.h tells what each reads and writes. */
export const nativeMemoryLoops = {
  copy: 0,
  triad: 1,
  reduceInPlace: 2,
  reduceOutOfPlace: 3,
  reduceToOne: 4,
} as const;

export interface NativeMemoryOptions {
  readonly loop: number;
  /** Per array. */
  readonly bytes: number;
  /** The k of the reducing loops; ignored by copy and triad. */
  readonly arrays: number;
  readonly threads: number;
  /** Untimed passes. */
  readonly warmup: number;
  readonly samples: number;
  /** Passes per sample. */
  readonly repeats: number;
  /** On huge pages, if the system lets programs choose; default false. */
  readonly hugePages?: boolean;
  /** Keeps its memory for the next call, which frees it unless it sets this too; default false. */
  readonly keep?: boolean;
}

export interface NativeMemoryBandwidth {
  /** Per pass, a value per sample. */
  readonly seconds: Float64Array;
  /** Bytes read and written per pass. */
  readonly bytes: number;
}

/** See native/measure/core_rates.h. */
export interface NativeCoreRatesOptions {
  /** The kernel's core numbers; one thread each, in parallel. */
  readonly cores: readonly number[];
  readonly rounds: number;
  readonly roundSeconds: number;
}

/** By core, then by round. */
export interface NativeCoreRates {
  /** Arithmetic steps per second of the thread's CPU time. */
  readonly stepsPerSecond: Float64Array;
  /** Share of wall time that the thread had the core, 0 to 1. */
  readonly shares: Float64Array;
}

/** How the processes' samples are combined into the list for every rank. */
export const nativeCombine = { own: 0, mean: 1, min: 2, max: 3 } as const;

/** The same on every rank. */
export interface NativeTimingOptions {
  /** sendReceive needs communicators with one rank, or GPUs. */
  readonly collective: NativeTimedName;
  /** Elements of one rank's block, as in native/core/communicator.h. */
  readonly count: number;
  readonly dtype: number;
  readonly op: number;
  readonly root: number;
  /** Not for allToAll, barrier and sendReceive. */
  readonly inPlace: boolean;
  /** Arrays from allocShared instead of plain ones. */
  readonly shared: boolean;
  /** Untimed calls. */
  readonly warmup: number;
  readonly samples: number;
  /** Calls per sample. */
  readonly batch: number;
  readonly combine: number;
  readonly verify: boolean;
  readonly seed: number;
  /** Per call; below 0 the communicator's default. */
  readonly timeoutMs: number;
  /** Options for GPUs; ignored elsewhere. */
  readonly gpu?: NativeGpuTimingOptions;
}

/** The same on every rank; see native/measure/between_cores.h. */
export interface NativeBetweenCoresOptions {
  /** Per array. */
  readonly bytes: number;
  /** A rank reads the array written by the rank this many before it. */
  readonly distance: number;
  readonly warmup: number;
  readonly samples: number;
  /** Per wait; below 0 the communicator's default. */
  readonly timeoutMs: number;
}

export interface NativeBetweenCores {
  /** Per array, in whole cache lines. */
  readonly bytes: number;
  /**
   * This rank's shortest times of put, get, put while others wait, get while others wait; 0 if it never ran. All 0 if
   * ranks do not share memory.
   */
  readonly plain: Float64Array;
  /** The same with puts that bypass the caches. */
  readonly streaming: Float64Array;
  /** Wrong bytes of its last reads. */
  readonly wrong: number;
}

/** See native/measure/message_loop.h; only `peer` and `first` differ between the two ranks. */
export interface NativeMessageOptions {
  readonly peer: number;
  /** True on exactly one of the two, which measures the time. */
  readonly first: boolean;
  readonly bytes: number;
  /** Messages per sample, before the answer. */
  readonly window: number;
  readonly answerBytes: number;
  readonly warmup: number;
  readonly samples: number;
  readonly verify: boolean;
  /** Per call; below 0 the communicator's default. */
  readonly timeoutMs: number;
}

export interface NativeMessages {
  /** Per sample, including the answer; empty on the other rank. */
  readonly seconds: Float64Array;
  /** Wrong bytes received by this rank. */
  readonly wrong: number;
}

/** How calls of GPU ranks are made: -G, -z, -R, -m and -u of nccl-tests. */
export interface NativeGpuTimingOptions {
  /** The batch becomes a graph that a sample launches this often; 0: no graph. */
  readonly graphLaunches: number;
  /** Whether to wait for each call: nativeWaiting. */
  readonly waiting: number;
  /** Memory registration with NCCL: nativeRegistration. */
  readonly registration: number;
  /** Runs the calls of a batch as one NCCL group. */
  readonly aggregate?: boolean;
  /** Elements before each array in its memory. */
  readonly unalign?: number;
  /**
   * Times as nccl-tests: by the host's clock, with arrays shifted from call to call through this many bytes; 0: off.
   */
  readonly shiftedThrough?: number;
}

/** -z of nccl-tests; waiting calls are timed by the host's clock. */
export const nativeWaiting = { none: 0, withBarrier: 1, alone: 2, untimedBarrier: 3 } as const;

/** -R of nccl-tests. */
export const nativeRegistration = { none: 0, local: 1, symmetric: 2 } as const;

/** A wrong element. */
export interface NativeWrongElement {
  /** The rank of the output; for copies the copy's number. */
  readonly rank: number;
  readonly index: number;
  /** The bits, in the low bytes. */
  readonly got: bigint;
  readonly expected: bigint;
}

export interface NativeTiming {
  /** Per call, a value per sample. */
  readonly seconds: Float64Array;
  /** Timed seconds of all samples. */
  readonly totalSeconds: number;
  /** Wrong elements on all ranks before the timing, and of the last timed call; 0 without `verify`. */
  readonly wrongBefore: number;
  readonly wrongAfter: number;
  /** The first one in this communicator, by rank, then by index; null if a second comparison found no error. */
  readonly firstWrong: NativeWrongElement | null;
  /** Host time to queue one call; null if calls are not queued. */
  readonly queueingSeconds: number | null;
  /** The actual registration: an old library downgrades symmetric to local. */
  readonly registration: number;
}

/** A call whose time NCCL is to estimate. */
export type NativeEstimated = Pick<
  NativeTimingOptions,
  'collective' | 'count' | 'dtype' | 'op' | 'root'
>;

/** Test data whose reductions are exact in any order: native/measure/pattern.h. */
export interface NativePattern {
  readonly dtype: number;
  readonly op: number;
  /** Ranks in the reduction. */
  readonly size: number;
  readonly seed: number;
}

/** The rule from pushed to pulled values of a store: native/measure/store_check.h. */
export interface NativePushRule {
  readonly dtype: number;
  /** Workers that push the same data. */
  readonly workers: number;
  /** 0 none, 1 2bit, 2 1bit. */
  readonly compression: number;
  readonly threshold: number;
  /** Whether devices are summed in float32 before compression. */
  readonly compressesSums: boolean;
}

/** One array of a batch; lists are by device. */
export interface NativePushed {
  readonly count: number;
  readonly gradients: readonly StorageArray[];
  /** The compression's residuals, which are updated; empty without compression. */
  readonly residuals: readonly Float32Array[];
}

/** With the pulled arrays; if `expected` is null it is computed from the pushed ones. */
export interface NativeChecked extends NativePushed {
  readonly expected: Float64Array | null;
  readonly outs: readonly StorageArray[];
}

export interface NativeCheckedOuts {
  /** The sum of |expected| per array. */
  readonly magnitudes: Float64Array;
  /** The sum of |out - expected|, by array, then by device. */
  readonly differences: Float64Array;
  /** Elements beyond the bound or NaN, in the same order. */
  readonly wrong: Float64Array;
}

export interface MeasureNatives {
  /** The kernels' SIMD level: 'avx512', 'avx2', 'neon' or 'scalar'. */
  simdLevel(): string;
  /** Threads per call, including the caller. */
  numThreads(): number;
  /** Time to wake an idle thread; measured by the first call in about 1.5 ms. */
  wakeUpSeconds(): number;
  /** On its own thread; measurements of one environment run one after another. */
  memoryBandwidth(options: NativeMemoryOptions): Promise<NativeMemoryBandwidth>;
  /** As memoryBandwidth. */
  coreRates(options: NativeCoreRatesOptions): Promise<NativeCoreRates>;
  /** On the communicator's thread, after queued calls. All ranks must call it. */
  timeCollective(
    communicator: NativeCommunicator,
    options: NativeTimingOptions,
  ): Promise<NativeTiming>;
  /** Cache lines from one core to another, on the communicator's thread. All ranks must call it. */
  timeBetweenCores(
    communicator: NativeCommunicator,
    options: NativeBetweenCoresOptions,
  ): Promise<NativeBetweenCores>;
  /** Messages between two ranks, which both call it, on the communicator's thread. */
  timeMessages(
    communicator: NativeCommunicator,
    options: NativeMessageOptions,
  ): Promise<NativeMessages>;
  /** NCCL's estimate in seconds per call; null without one. All ranks must call it with the same calls. */
  estimateCollectives(
    communicator: NativeCommunicator,
    calls: readonly NativeEstimated[],
    timeoutMs: number,
  ): Promise<(number | null)[]>;
  /** Writes elements first, first + 1, ... of `rank`'s input into the whole array. */
  fillPattern(array: StorageArray, pattern: NativePattern, first: number, rank: number): void;
  /** Elements that differ from `rank`'s input or, for rank -1, from the reduction of all inputs. */
  countWrong(array: StorageArray, pattern: NativePattern, first: number, rank: number): number;
  /** Fills float arrays with uniform random numbers, each from its start in the stream, with all threads. */
  drawUniform(arrays: readonly StorageArray[], dtype: number, starts: readonly number[]): void;
  /** Touches new memory with all threads, on huge pages if possible; the content stays. */
  touchMemory(bytes: Uint8Array): void;
  /** Computes the first elements of the rule's result for one array. */
  sumPushed(into: Float64Array, pushed: NativePushed, rule: NativePushRule): void;
  /** Compares arrays, each on one thread from start to end, so that sums are bit-equal. */
  checkOuts(
    arrays: readonly NativeChecked[],
    rule: NativePushRule,
    bound: number,
  ): NativeCheckedOuts;
}
