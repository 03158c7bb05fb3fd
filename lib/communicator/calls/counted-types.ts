// The types of collectives with counts.
import type { AnyDType } from '../../tensor/dtype.js';
import type { NewArrays, RootOptions } from './types.js';

/** Elements for or from each rank, in the order of the ranks. */
export type Counts = readonly number[];

/** A result whose length is known only after the ranks have exchanged counts. */
export interface Counted<A> {
  /** `out`, which may be longer than the result, or a new array of exactly the result. */
  readonly data: A;
  /** Elements from each rank, in the order of {@link data}. For scatterV and reduceScatterV those for each rank. */
  readonly counts: number[];
}

/** One result, or one for each rank of a group. */
export type CountedResult<O> = O extends readonly (infer A)[] ? Counted<A>[] : Counted<O>;

/** One list of counts, or one for each rank of a group. */
export type CountsOf<D> = D extends readonly unknown[] ? readonly Counts[] : Counts;

/** Options of {@link Communicator.allToAllV}. */
export interface SplitOptions<D> {
  /** How many elements of `data` go to each rank; their sum is its length. */
  splits: CountsOf<D>;
  /** How many elements each rank should send here, if known: anything else is `ERR_MISMATCH`. */
  receiveSplits?: CountsOf<D> | undefined;
}

/** Options of {@link Communicator.allGatherV} and {@link Communicator.gatherV}. */
export interface CountsOptions {
  /** How many elements each rank brings, if known: anything else is `ERR_MISMATCH`. */
  counts?: Counts | undefined;
}

/** Options of {@link Communicator.reduceScatterV}. */
export interface ShareOptions {
  /** How many elements each rank gets, the same on all; when absent, equal parts, the first ranks one more. */
  counts?: Counts | undefined;
}

/** Options of {@link Communicator.scatterV} on the root. */
export interface ScatterCountsOptions extends RootOptions {
  /** How many elements of `data` each rank gets; their sum is its length. */
  counts: Counts;
}

/** Options of a scatterV on a rank that brings no data: the array is made. */
export interface ScatterDType<K extends AnyDType> extends RootOptions {
  /** The type of the received elements. */
  dtype: K;
}

/** The result of `scatterV`: an array for each rank held. */
export type ScatterOut<A, D> = A extends readonly unknown[] ? NewArrays<D[]> : NewArrays<D>;
