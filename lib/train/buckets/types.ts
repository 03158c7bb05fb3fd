// What is reduced, how it is dealt out to buckets, and what a pass tells afterwards.

/**
 * When a bucket's collective begins. `overlap`: as soon as its gradients are there, while backward still runs.
 * `async`: after backward, all at once, and waited for together. `sync`: after backward, one after the other.
 */
export const reduceModes = ['overlap', 'async', 'sync'] as const;
/** One of {@link reduceModes}. */
export type ReduceMode = (typeof reduceModes)[number];

/** One gradient, float32; its index is its place in the list that all ranks give in the same order. */
export interface GradientSpec {
  /** Of its variable. */
  readonly name: string;
  /** Row-major. */
  readonly shape: readonly number[];
}

/** The gradients of one bucket, in the order in which they lie in it. */
export interface BucketPlan {
  /** Their places in the list that the plan was made from. */
  readonly gradients: readonly number[];
  /** Of all its gradients. */
  readonly elements: number;
  /** Of all its gradients. */
  readonly bytes: number;
}

/** The memory of one bucket. */
export interface Bucket {
  /** In the order in which they lie in {@link data}. */
  readonly gradients: readonly number[];
  /** Of all its gradients. */
  readonly elements: number;
  /** Gradients from the start on, then zeros up to n parts of n ranks. */
  readonly data: Float32Array;
  /** Elements: rank r's part starts at r times this. */
  readonly part: number;
}

/** Half the bytes: rounded to the nearest, divided by the number of ranks before the sum, so that it cannot overflow. */
export interface HalfHook {
  /** Which half gradients travel as. */
  readonly type: 'float16' | 'bfloat16';
}

/** Two bits an element, -threshold, 0 or threshold; what they do not carry is added the next time. 0.5 when absent. */
export interface TwoBitHook {
  /** Two bits an element, the rest kept for the next step. */
  readonly type: '2bit';
  /** What an element that is sent stands for; default 0.5. */
  readonly threshold?: number | undefined;
}

/**
 * Matrices as products of two thin ones, what these do not carry added the next time; vectors and small matrices go
 * as they are.
 */
export interface PowerSgdHook {
  /** Two thin matrices for each gradient. */
  readonly type: 'powersgd';
  /** Columns of the thin matrices; 1 when absent. */
  readonly rank?: number | undefined;
  /** Passes before, in which all goes uncompressed; 10 when absent, at least 2. */
  readonly startPass?: number | undefined;
  /** A matrix is compressed where (rows + columns) * rank * this is below its elements; 2 when absent. */
  readonly minCompressionRate?: number | undefined;
  /** The same on all ranks; 0 when absent. */
  readonly seed?: number | undefined;
}

/** What happens to a bucket on its way; the names alone take the defaults. */
export type BucketHook = HalfHook | TwoBitHook | PowerSgdHook;
/** One of {@link bucketHooks}. */
export type BucketHookName = BucketHook['type'];

/** How gradients are put into buckets and reduced. */
export interface ReducerOptions {
  /** `'overlap'` when absent. */
  readonly mode?: ReduceMode | undefined;
  /**
   * A bucket is closed by the gradient that brings it to this many bytes. 25 MiB when absent, and then the first
   * bucket 1 MiB, so that the first collective begins early; 25 MiB given is 25 MiB for the first too. Infinity makes
   * one bucket of all.
   */
  readonly bucketCapBytes?: number | undefined;
  /** Cap of the first bucket. */
  readonly firstBucketBytes?: number | undefined;
  /**
   * Deal the gradients out anew after the first pass, in the order in which they came on rank 0. True when absent;
   * else the buckets keep the reversed order of the list.
   */
  readonly rebuild?: boolean | undefined;
  /** Which gradients share a bucket, instead of dealing them out by size; each gradient in one of them. */
  readonly buckets?: readonly (readonly number[])[] | undefined;
  /** `'avg'` when absent. */
  readonly op?: 'avg' | 'sum' | undefined;
  /** How buckets are compressed; not at all when absent. */
  readonly hook?: BucketHook | BucketHookName | undefined;
  /** Milliseconds for each collective; the communicator's own default when absent. */
  readonly timeoutMs?: number | undefined;
}

/** Of one backward pass. */
export interface PassOptions {
  /**
   * How often each gradient will be added in this pass: 0 for one that is not used, 2 for a variable used twice, whose
   * parts are summed. Once each when absent.
   */
  readonly uses?: ArrayLike<number> | undefined;
  /** What is added is multiplied by this: size * own batch / all batches, where these differ. 1 when absent. */
  readonly scale?: number | undefined;
  /** False: only add to what the buckets hold; a later pass that reduces takes all of it. True when absent. */
  readonly reduce?: boolean | undefined;
  /** @internal Each rank gets its part of each bucket alone; the rest may hold anything. The same on every rank. */
  readonly part?: boolean | undefined;
}

/** Options of {@link GradientReducer.attend}. */
export interface AttendOptions {
  /** Samples in this rank's batch, on all ranks or on none: ranks count by their samples. The same each when absent. */
  readonly samples?: number | undefined;
  /** As in the {@link PassOptions} of the pass that follows. */
  readonly reduce?: boolean | undefined;
}

/** What a rank that has joined does besides, in each pass of the others. */
export interface JoinedPasses {
  /** Called before the buckets are reduced: for collectives that the others make there. */
  readonly before?: (() => unknown) | undefined;
  /** Called when they are. */
  readonly after?: (() => unknown) | undefined;
  /** @internal As in the {@link PassOptions} of the others' passes. */
  readonly part?: boolean | undefined;
}

/** One bucket's collective, in seconds of the monotonic clock of {@link monotonicSeconds}. */
export interface BucketTimes {
  /** Its place in the plan. */
  readonly bucket: number;
  /** Its last gradient had come. */
  readonly readySeconds: number;
  /** Its collective began. */
  readonly startSeconds: number;
  /** Its collective had ended. */
  readonly endSeconds: number;
}
