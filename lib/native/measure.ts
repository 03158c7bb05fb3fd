// The native surface of measuring: native/binding/measure/measure_wrap.cc. Numbers of dtypes and reduce ops are those of
// native/core/kernels/dtype.h and native/core/kernels/reduce_op.h.
import type { StorageArray } from './arrays.js';
import type { NativeTimedName } from '../collectives.js';
import type { NativeCommunicator } from './communicator.js';

/** Numbers of the loops; what each reads and writes is said in native/measure/memory_bandwidth.h. */
export const nativeMemoryLoops = {
  copy: 0,
  triad: 1,
  reduceInPlace: 2,
  reduceOutOfPlace: 3,
  reduceToOne: 4,
} as const;

export interface NativeMemoryOptions {
  readonly loop: number;
  /** Of one array. */
  readonly bytes: number;
  /** The k of the reducing loops; copy and triad ignore it. */
  readonly arrays: number;
  readonly threads: number;
  /** Passes that are not timed. */
  readonly warmup: number;
  readonly samples: number;
  /** Passes that one sample times together. */
  readonly repeats: number;
  /** On huge pages, where the system leaves that to programs; default false. */
  readonly hugePages?: boolean;
  /** Leaves its memory to the next call, which leaves none where it does not say so too; default false. */
  readonly keep?: boolean;
}

export interface NativeMemoryBandwidth {
  /** Of one pass, a value a sample. */
  readonly seconds: Float64Array;
  /** Bytes that one pass reads and writes. */
  readonly bytes: number;
}

/** What is measured is said in native/measure/core_rates.h. */
export interface NativeCoreRatesOptions {
  /** Numbers of the kernel; a thread each, all at once. */
  readonly cores: readonly number[];
  readonly rounds: number;
  readonly roundSeconds: number;
}

/** By core, then by round. */
export interface NativeCoreRates {
  /** Steps of arithmetic in a second of the thread's own processor time. */
  readonly stepsPerSecond: Float64Array;
  /** Of the time in which the thread was given the core, 0 to 1. */
  readonly shares: Float64Array;
}

/** How the samples of a job's processes become the one list that every rank gets. */
export const nativeCombine = { own: 0, mean: 1, min: 2, max: 3 } as const;

/** The same on every rank. */
export interface NativeTimingOptions {
  /** sendReceive is for communicators that hold one rank, and GPUs. */
  readonly collective: NativeTimedName;
  /** In elements, as native/core/communicator.h counts for this collective: of one rank's block. */
  readonly count: number;
  readonly dtype: number;
  readonly op: number;
  readonly root: number;
  /** Not for allToAll, barrier and sendReceive. */
  readonly inPlace: boolean;
  /** Arrays of allocShared rather than plain ones. */
  readonly shared: boolean;
  /** Calls that are not timed. */
  readonly warmup: number;
  readonly samples: number;
  /** Calls that one sample times together. */
  readonly batch: number;
  readonly combine: number;
  readonly verify: boolean;
  readonly seed: number;
  /** Of each call; below 0 takes the communicator's own default. */
  readonly timeoutMs: number;
  /** What only GPUs have; ignored elsewhere. */
  readonly gpu?: NativeGpuTimingOptions;
}

/** The same on every rank; what is timed is said in native/measure/between_cores.h. */
export interface NativeBetweenCoresOptions {
  /** Of one array. */
  readonly bytes: number;
  /** A rank reads what the rank so many before it wrote. */
  readonly distance: number;
  readonly warmup: number;
  readonly samples: number;
  /** Of each wait; below 0 takes the communicator's own default. */
  readonly timeoutMs: number;
}

export interface NativeBetweenCores {
  /** Of one array, in whole cache lines. */
  readonly bytes: number;
  /**
   * This rank's shortest of putting, getting, putting while others wait, getting while others wait; 0 of what it never
   * did. All 0 where ranks do not see each other's memory.
   */
  readonly plain: Float64Array;
  /** The same of puts that bypass the caches. */
  readonly streaming: Float64Array;
  /** Bytes of its last readings that are not the writer's. */
  readonly wrong: number;
}

/** What is timed is said in native/measure/message_loop.h; `peer` and `first` alone differ between the two ranks. */
export interface NativeMessageOptions {
  readonly peer: number;
  /** Of the two exactly one, which takes the time. */
  readonly first: boolean;
  readonly bytes: number;
  /** Messages of a sample, before the answer. */
  readonly window: number;
  readonly answerBytes: number;
  readonly warmup: number;
  readonly samples: number;
  readonly verify: boolean;
  /** Of each call; below 0 takes the communicator's own default. */
  readonly timeoutMs: number;
}

export interface NativeMessages {
  /** Of a whole sample, its answer included; empty on the rank that is not first. */
  readonly seconds: Float64Array;
  /** Bytes that came to this rank and are not what was sent. */
  readonly wrong: number;
}

/** How calls of ranks that are GPUs are made: nccl-tests' -G, -z, -R, -m and -u. */
export interface NativeGpuTimingOptions {
  /** The batch is captured as a graph that a sample launches so often; 0: no graph. */
  readonly graphLaunches: number;
  /** Whether each call is waited for: nativeWaiting. */
  readonly waiting: number;
  /** How memory is made known to NCCL: nativeRegistration. */
  readonly registration: number;
  /** The calls of a batch are one group of NCCL. */
  readonly aggregate?: boolean;
  /** Elements before each array in its memory. */
  readonly unalign?: number;
  /** As nccl-tests times: by the host's clock, arrays shifted from call to call through memory of so many bytes; 0: not. */
  readonly shiftedThrough?: number;
}

/** Of nccl-tests' -z; waiting calls are timed by the host's clock. */
export const nativeWaiting = { none: 0, withBarrier: 1, alone: 2, untimedBarrier: 3 } as const;

/** Of nccl-tests' -R. */
export const nativeRegistration = { none: 0, local: 1, symmetric: 2 } as const;

/** An element that is not what it must be. */
export interface NativeWrongElement {
  /** Whose output it is in; of copies, which of them. */
  readonly rank: number;
  readonly index: number;
  /** Bits, in the low bytes. */
  readonly got: bigint;
  readonly expected: bigint;
}

export interface NativeTiming {
  /** Of one call, a value a sample. */
  readonly seconds: Float64Array;
  /** The timed regions of all samples together. */
  readonly totalSeconds: number;
  /** Wrong elements on all ranks before the timing, and of the last timed call; 0 without `verify`. */
  readonly wrongBefore: number;
  readonly wrongAfter: number;
  /** The first of this communicator's of them, by rank and then by index; null where a second look found all right. */
  readonly firstWrong: NativeWrongElement | null;
  /** The host's, of queueing one call; null where calls are not queued. */
  readonly queueingSeconds: number | null;
  /** What the registration became: an old library makes local of symmetric. */
  readonly registration: number;
}

/** A call whose time is asked of NCCL. */
export type NativeEstimated = Pick<
  NativeTimingOptions,
  'collective' | 'count' | 'dtype' | 'op' | 'root'
>;

/** Test data whose reductions are exact in any order: native/measure/pattern.h. */
export interface NativePattern {
  readonly dtype: number;
  readonly op: number;
  /** Ranks that are reduced. */
  readonly size: number;
  readonly seed: number;
}

/** How what is pushed into a store becomes what its pulls must give: native/measure/store_check.h. */
export interface NativePushRule {
  readonly dtype: number;
  /** Workers that push the same. */
  readonly workers: number;
  /** 0 none, 1 2bit, 2 1bit. */
  readonly compression: number;
  readonly threshold: number;
  /** Whether the devices are summed, in float32, before anything is compressed. */
  readonly compressesSums: boolean;
}

/** One array of a batch; lists are by device. */
export interface NativePushed {
  readonly count: number;
  readonly gradients: readonly StorageArray[];
  /** What compression keeps, and goes on with; empty without it. */
  readonly residuals: readonly Float32Array[];
}

/** With what was pulled; `expected` null takes it from what was pushed. */
export interface NativeChecked extends NativePushed {
  readonly expected: Float64Array | null;
  readonly outs: readonly StorageArray[];
}

export interface NativeCheckedOuts {
  /** The sum of |expected|, an array each. */
  readonly magnitudes: Float64Array;
  /** The sum of |out - expected|, by array, then by device. */
  readonly differences: Float64Array;
  /** Elements off by more than the bound, or not numbers; the same order. */
  readonly wrong: Float64Array;
}

export interface MeasureNatives {
  /** 'avx512', 'avx2', 'neon' or 'scalar': what the kernels use. */
  simdLevel(): string;
  /** Threads that one call can use, its own included. */
  numThreads(): number;
  /** From waking a thread to its first instruction, where its core is idle; measured by the first call, in some 1.5 ms. */
  wakeUpSeconds(): number;
  /** On a thread of its own; measurements of one environment run one after the other. */
  memoryBandwidth(options: NativeMemoryOptions): Promise<NativeMemoryBandwidth>;
  /** As memoryBandwidth. */
  coreRates(options: NativeCoreRatesOptions): Promise<NativeCoreRates>;
  /** On the communicator's own thread, after what is queued there. All ranks must call it. */
  timeCollective(
    communicator: NativeCommunicator,
    options: NativeTimingOptions,
  ): Promise<NativeTiming>;
  /** Lines that one core writes and another reads; on the communicator's thread. All ranks must call it. */
  timeBetweenCores(
    communicator: NativeCommunicator,
    options: NativeBetweenCoresOptions,
  ): Promise<NativeBetweenCores>;
  /** Messages between two ranks, both of which call it; on the communicator's thread. */
  timeMessages(
    communicator: NativeCommunicator,
    options: NativeMessageOptions,
  ): Promise<NativeMessages>;
  /**
   * Of each call the seconds that NCCL expects; null where it has no model of it, and elsewhere. All ranks must call it,
   * with the same calls.
   */
  estimateCollectives(
    communicator: NativeCommunicator,
    calls: readonly NativeEstimated[],
    timeoutMs: number,
  ): Promise<(number | null)[]>;
  /** Writes elements first, first + 1, ... of `rank`'s input into the whole array. */
  fillPattern(array: StorageArray, pattern: NativePattern, first: number, rank: number): void;
  /** Elements that are not `rank`'s input or, for rank -1, not the reduction of all ranks' inputs. */
  countWrong(array: StorageArray, pattern: NativePattern, first: number, rank: number): number;
  /** Fills arrays of a float type with uniform numbers, each by the start of its stream, with all threads. */
  drawUniform(arrays: readonly StorageArray[], dtype: number, starts: readonly number[]): void;
  /** Touches untouched memory with all threads, on huge pages where there may be; what it holds stays. */
  touchMemory(bytes: Uint8Array): void;
  /** The first elements of `into` become what the rule makes of one array. */
  sumPushed(into: Float64Array, pushed: NativePushed, rule: NativePushRule): void;
  /** Compares arrays, each on one thread from its first element to its last, so that sums have always the same bits. */
  checkOuts(
    arrays: readonly NativeChecked[],
    rule: NativePushRule,
    bound: number,
  ): NativeCheckedOuts;
}
