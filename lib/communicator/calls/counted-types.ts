// The types of collectives with counts.
import type { AnyDType } from '../../tensor/dtype.js';
import type { NewArrays, RootOptions } from './types.js';

/** Elements for or from each rank, in the order of the ranks. */
export type Counts = readonly number[];

/** A result whose length is known only when the ranks have told one another. */
export interface Counted<A> {
  /** `out`, of which the result may be only the beginning, or a new array of just as many elements as came. */
  readonly data: A;
  /**
   * Elements that came from each rank, one after the other in {@link data}. Of scatterV and reduceScatterV those that
   * each rank got.
   */
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
  /** How many elements each rank is to send here, where the caller knows it: anything else is `ERR_MISMATCH`. */
  receiveSplits?: CountsOf<D> | undefined;
}

/** Options of {@link Communicator.allGatherV} and {@link Communicator.gatherV}. */
export interface CountsOptions {
  /** How many elements each rank brings, where the caller knows it: anything else is `ERR_MISMATCH`. */
  counts?: Counts | undefined;
}

/** Options of {@link Communicator.reduceScatterV}. */
export interface ShareOptions {
  /** How many elements each rank gets, the same on all; as equal as can be when absent, the first ranks one more. */
  counts?: Counts | undefined;
}

/** Options of {@link Communicator.scatterV} on the root. */
export interface ScatterCountsOptions extends RootOptions {
  /** How many elements of `data` each rank gets; their sum is its length. */
  counts: Counts;
}

/** Options of a scatterV on a rank that brings no data: the array is made. */
export interface ScatterDType<K extends AnyDType> extends RootOptions {
  /** Of the elements that arrive. */
  dtype: K;
}

/** What `scatterV` gives: an array for each rank held. */
export type ScatterOut<A, D> = A extends readonly unknown[] ? NewArrays<D[]> : NewArrays<D>;
