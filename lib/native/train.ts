// The native surface of gradient buckets: native/binding/communicator/buckets_wrap.cc.
import type { NativeCommunicator } from './communicator.js';

/** What happens to a bucket on its way; `plain` is an all-reduce. */
export interface NativeBucketHook {
  readonly type: 'plain' | 'float16' | 'bfloat16' | '2bit' | 'powersgd';
  /** Of `2bit`. */
  readonly threshold: number;
  /** Of `powersgd`, as are the rest. */
  readonly rank: number;
  readonly startPass: number;
  readonly minCompressionRate: number;
  readonly seed: number;
}

/** Gradients gathered in buckets, each reduced on the communicator's thread once it is complete. */
export interface NativeBuckets {
  /**
   * @param uses - how often each gradient comes in this pass
   * @param scale - what is added is multiplied by it
   * @param reduces - false: nothing is started, and the next pass adds to what is there
   * @param part - each rank gets its n-th of each bucket alone; buckets of a multiple of 16 n elements
   */
  begin(uses: Uint32Array, scale: number, reduces: boolean, part: boolean): void;
  /** Copies or adds; starts what is complete, in the order of the buckets. */
  add(gradient: number, data: Float32Array): void;
  /** What is missing counts as zeros: starts all the rest. */
  flush(): void;
  /** Resolves when all that was started is done: ready, start and end of each bucket in monotonic seconds. */
  wait(): Promise<Float64Array>;
  waitSync(): Float64Array;
}

export interface NativeBucketsClass {
  readonly prototype: NativeBuckets;
  /**
   * @param arrays - one for each bucket
   * @param slots - bucket, offset, rows and columns of each gradient
   * @param op - 0 sum, 1 average
   * @param timeoutMs - of each collective; below 0 the communicator's own
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
