// Gradients, their buckets, and the results of a pass.

/**
 * When a bucket's collective begins. `overlap`: once its gradients are complete, during the backward pass. `async`:
 * after the backward pass, all at once. `sync`: after the backward pass, one after another.
 */
export const reduceModes = ['overlap', 'async', 'sync'] as const;
/** One of {@link reduceModes}. */
export type ReduceMode = (typeof reduceModes)[number];

/** A float32 gradient; its index is its position in the list, which is the same on all ranks. */
export interface GradientSpec {
  /** The variable's name. */
  readonly name: string;
  /** Dimensions, row-major. */
  readonly shape: readonly number[];
}

/** The gradients of one bucket in memory order. */
export interface BucketPlan {
  /** Their indices in the list. */
  readonly gradients: readonly number[];
  /** Elements of all its gradients. */
  readonly elements: number;
  /** Bytes of all its gradients. */
  readonly bytes: number;
}

/** The memory of one bucket. */
export interface Bucket {
  /** Their indices, in the order of {@link data}. */
  readonly gradients: readonly number[];
  /** Elements of all its gradients. */
  readonly elements: number;
  /** The gradients, then zeros up to n equal parts for n ranks. */
  readonly data: Float32Array;
  /** Elements per part: rank r's part starts at r times this. */
  readonly part: number;
}

/** Halves the bytes: rounds to nearest, and divides by the number of ranks before the sum to avoid overflow. */
export interface HalfHook {
  /** The type of the gradients in transit. */
  readonly type: 'float16' | 'bfloat16';
}

/** Two bits per element: -threshold, 0 or threshold. The error is added to the next pass. */
export interface TwoBitHook {
  /** Two bits per element with error feedback. */
  readonly type: '2bit';
  /** The value of a sent element; default 0.5. */
  readonly threshold?: number | undefined;
}

/**
 * Matrices as products of two thin ones, with the error added to the next pass; vectors and small matrices are not
 * compressed.
 */
export interface PowerSgdHook {
  /** Two thin matrices per gradient. */
  readonly type: 'powersgd';
  /** Columns of the thin matrices; 1 when absent. */
  readonly rank?: number | undefined;
  /** Number of initial uncompressed passes; 10 when absent, at least 2. */
  readonly startPass?: number | undefined;
  /** A matrix is compressed if (rows + columns) * rank * this is below its elements; 2 when absent. */
  readonly minCompressionRate?: number | undefined;
  /** The same on all ranks; 0 when absent. */
  readonly seed?: number | undefined;
}

/** The compression of buckets; a name alone uses the defaults. */
export type BucketHook = HalfHook | TwoBitHook | PowerSgdHook;
/** One of {@link bucketHooks}. */
export type BucketHookName = BucketHook['type'];

/** How gradients are bucketed and reduced. */
export interface ReducerOptions {
  /** `'overlap'` when absent. */
  readonly mode?: ReduceMode | undefined;
  /**
   * A bucket is closed by the gradient that reaches this size. When absent 25 MiB, with a first bucket of 1 MiB to
   * start early; an explicit value applies to all buckets. Infinity makes a single bucket.
   */
  readonly bucketCapBytes?: number | undefined;
  /** Cap of the first bucket. */
  readonly firstBucketBytes?: number | undefined;
  /**
   * Reassigns gradients after the first pass, in their order on rank 0. True when absent; otherwise buckets keep the
   * reversed list order.
   */
  readonly rebuild?: boolean | undefined;
  /** The gradients of each bucket, instead of assignment by size; each gradient in exactly one. */
  readonly buckets?: readonly (readonly number[])[] | undefined;
  /** `'avg'` when absent. */
  readonly op?: 'avg' | 'sum' | undefined;
  /** The compression of buckets; none when absent. */
  readonly hook?: BucketHook | BucketHookName | undefined;
  /** Milliseconds of each collective; the communicator's default when absent. */
  readonly timeoutMs?: number | undefined;
}

/** Options of a backward pass. */
export interface PassOptions {
  /**
   * How often each gradient is added in this pass: 0 if unused, 2 for a variable used twice, whose parts are summed.
   * Once each when absent.
   */
  readonly uses?: ArrayLike<number> | undefined;
  /** Factor of added gradients: size * own batch / all batches, if these differ. 1 when absent. */
  readonly scale?: number | undefined;
  /** False: only accumulates in the buckets, for a later reduction. True when absent. */
  readonly reduce?: boolean | undefined;
  /** @internal Each rank gets only its part of each bucket; the rest may hold anything. The same on every rank. */
  readonly part?: boolean | undefined;
}

/** Options of {@link GradientReducer.attend}. */
export interface AttendOptions {
  /** Samples in this rank's batch, as weight of the rank, on all ranks or none. Equal weights when absent. */
  readonly samples?: number | undefined;
  /** As in {@link PassOptions} of the next pass. */
  readonly reduce?: boolean | undefined;
}

/** Callbacks of a joined rank in each pass of the others. */
export interface JoinedPasses {
  /** Called before the buckets are reduced, for the others' collectives at that point. */
  readonly before?: (() => unknown) | undefined;
  /** Called after the reduction. */
  readonly after?: (() => unknown) | undefined;
  /** @internal As in {@link PassOptions} of the others' passes. */
  readonly part?: boolean | undefined;
}

/** The times of a bucket's collective, in seconds of {@link monotonicSeconds}. */
export interface BucketTimes {
  /** The bucket's index in the plan. */
  readonly bucket: number;
  /** When its last gradient was added. */
  readonly readySeconds: number;
  /** When its collective began. */
  readonly startSeconds: number;
  /** When its collective ended. */
  readonly endSeconds: number;
}
