// The native interface of gradient buckets: native/binding/communicator/buckets_wrap.cc.
import type { NativeCommunicator } from './communicator.js';

/** The communication hook of a bucket; `plain` is an all-reduce. */
export interface NativeBucketHook {
  readonly type: 'plain' | 'float16' | 'bfloat16' | '2bit' | 'powersgd';
  /** For `2bit`. */
  readonly threshold: number;
  /** For `powersgd`, as are the rest. */
  readonly rank: number;
  readonly startPass: number;
  readonly minCompressionRate: number;
  readonly seed: number;
}

/** Gradients in buckets, each reduced on the communicator's thread once complete. */
export interface NativeBuckets {
  /**
   * @param uses - how often each gradient is added in this pass
   * @param scale - factor of added gradients
   * @param reduces - false: accumulates without reducing, for the next pass
   * @param part - each rank gets only its n-th of each bucket; buckets must have a multiple of 16 n elements
   */
  begin(uses: Uint32Array, scale: number, reduces: boolean, part: boolean): void;
  /** Copies or adds; starts complete buckets in order. */
  add(gradient: number, data: Float32Array): void;
  /** Starts all remaining buckets; missing gradients count as zeros. */
  flush(): void;
  /** Resolves when all started buckets are done: ready, start and end of each in monotonic seconds. */
  wait(): Promise<Float64Array>;
  waitSync(): Float64Array;
}

export interface NativeBucketsClass {
  readonly prototype: NativeBuckets;
  /**
   * @param arrays - one for each bucket
   * @param slots - bucket, offset, rows and columns of each gradient
   * @param op - 0 sum, 1 average
   * @param timeoutMs - of each collective; below 0 the communicator's default
   */
  new (
    communicator: NativeCommunicator,
    arrays: readonly Float32Array[],
    slots: Float64Array,
    op: number,
    hook: NativeBucketHook,
    timeoutMs: number,
  ): NativeBuckets;
}

export interface TrainNatives {
  readonly NativeBuckets: NativeBucketsClass;
}
