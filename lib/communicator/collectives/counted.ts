// Collectives with counts, of one rank or of all: what ranks bring and get differs in length, and results say how much
// came from whom. How their arguments are checked stands in counted-call.ts.
import type { DType } from '../../tensor/dtype.js';
import type { ArrayOf } from '../../tensor/dtype.js';
import { CommunicatorBase } from '../base.js';
import { prepareCounted } from '../calls/counted-call.js';
import type { RawCountedOptions } from '../calls/counted-call.js';
import type {
  Counted,
  CountedResult,
  CountsOptions,
  ScatterCountsOptions,
  ScatterDType,
  ScatterOut,
  ShareOptions,
  SplitOptions,
} from '../calls/counted-types.js';
import type {
  ArrayOfRank,
  AsyncOptions,
  CallOptions,
  DTypeOption,
  Memory,
  NewArrays,
  NothingGiven,
  OpOptions,
  Options,
  OutOptions,
  RankData,
  RequiredOptions,
  RootOptions,
  SameArrays,
} from '../calls/types.js';

interface AsyncRaw extends RawCountedOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * The ranks tell one another their counts before anything moves: where they do not fit together (other operations,
 * types, roots; an `out` that is too short; counts that a rank expected otherwise), every rank's call ends with the same
 * `ERR_MISMATCH`, and the communicator stays usable. `out` may be longer than what comes. Without it the result is a
 * new array; where ranks are GPUs that takes counts that are known ahead.
 */
export abstract class CountedCollectives<
  M extends Memory,
  A extends RankData,
> extends CommunicatorBase<M> {
  /**
   * Sends a part of each rank's data to each rank, `splits[r]` elements to rank r.
   *
   * @param data - the parts, one after the other in the order of the ranks.
   * @param options - `splits`, `receiveSplits`, `out`, `dtype`, `timeoutMs`, `signal`; of a group lists of them, one
   *   for each rank.
   * @returns what came, in the order of the ranks, and how much from each.
   */
  async allToAllV<D extends A>(
    data: D,
    ...[options]: RequiredOptions<D, SplitOptions<D> & OutOptions<NewArrays<D>> & AsyncOptions>
  ): Promise<CountedResult<NewArrays<D>>> {
    return this.executor.run(
      prepareCounted(this.executor, 'allToAllV', data, options, false),
      options.signal,
    );
  }
  /** {@link allToAllV}, blocking. */
  allToAllVSync<D extends A>(
    data: D,
    ...[options]: RequiredOptions<D, SplitOptions<D> & OutOptions<NewArrays<D>> & CallOptions>
  ): CountedResult<NewArrays<D>> {
    return this.executor.runSync(prepareCounted(this.executor, 'allToAllV', data, options, true));
  }

  /**
   * Gives everybody everybody's data, of any length on each rank.
   *
   * @param options - `counts`, `out`, `dtype`, `timeoutMs`, `signal`.
   */
  async allGatherV<D extends A>(
    data: D,
    ...[options]: Options<D, CountsOptions & OutOptions<NewArrays<D>> & AsyncOptions>
  ): Promise<CountedResult<NewArrays<D>>> {
    return this.executor.run(
      prepareCounted(this.executor, 'allGatherV', data, options, false),
      options?.signal,
    );
  }
  /** {@link allGatherV}, blocking. */
  allGatherVSync<D extends A>(
    data: D,
    ...[options]: Options<D, CountsOptions & OutOptions<NewArrays<D>> & CallOptions>
  ): CountedResult<NewArrays<D>> {
    return this.executor.runSync(prepareCounted(this.executor, 'allGatherV', data, options, true));
  }

  /**
   * As {@link allGatherV}, but only the root gets the result.
   *
   * @returns on the root the data of all; elsewhere undefined. Of a group `out` is the root's array.
   */
  async gatherV<D extends A>(
    data: D,
    ...[options]: Options<
      D,
      CountsOptions & RootOptions & OutOptions<ArrayOfRank<NewArrays<D>>> & AsyncOptions
    >
  ): Promise<Counted<ArrayOfRank<NewArrays<D>>> | undefined> {
    return this.executor.run(
      prepareCounted(this.executor, 'gatherV', data, options, false),
      options?.signal,
    );
  }
  /** {@link gatherV}, blocking. */
  gatherVSync<D extends A>(
    data: D,
    ...[options]: Options<
      D,
      CountsOptions & RootOptions & OutOptions<ArrayOfRank<NewArrays<D>>> & CallOptions
    >
  ): Counted<ArrayOfRank<NewArrays<D>>> | undefined {
    return this.executor.runSync(prepareCounted(this.executor, 'gatherV', data, options, true));
  }

  /**
   * Gives each rank a part of the root's data, `counts[r]` elements to rank r.
   *
   * @param data - the root's array, the parts one after the other; elsewhere anything nullish.
   * @param options - on the root `counts`; elsewhere `out`, or the `dtype` of the array to make; `root`, `timeoutMs`,
   *   `signal`. Of a group `data` and `counts` are the root's, and `out` is a list.
   */
  scatterV<D extends ArrayOfRank<A>>(
    data: D,
    ...options: RequiredOptions<
      D,
      ScatterCountsOptions & OutOptions<ScatterOut<A, D>> & AsyncOptions
    >
  ): Promise<CountedResult<ScatterOut<A, D>>>;
  scatterV<O extends A>(
    data: null | undefined,
    options: { out: O } & RootOptions & DTypeOption<O> & AsyncOptions,
  ): Promise<CountedResult<SameArrays<O>>>;
  scatterV<K extends DType>(
    data: NothingGiven<A>,
    options: ScatterDType<K> & AsyncOptions,
  ): Promise<Counted<ArrayOf[K]>>;
  async scatterV(data: unknown, options?: AsyncRaw): Promise<unknown> {
    return this.executor.run(
      prepareCounted(this.executor, 'scatterV', data, options, false),
      options?.signal,
    );
  }
  /** {@link scatterV}, blocking. */
  scatterVSync<D extends ArrayOfRank<A>>(
    data: D,
    ...options: RequiredOptions<
      D,
      ScatterCountsOptions & OutOptions<ScatterOut<A, D>> & CallOptions
    >
  ): CountedResult<ScatterOut<A, D>>;
  scatterVSync<O extends A>(
    data: null | undefined,
    options: { out: O } & RootOptions & DTypeOption<O> & CallOptions,
  ): CountedResult<SameArrays<O>>;
  scatterVSync<K extends DType>(
    data: NothingGiven<A>,
    options: ScatterDType<K> & CallOptions,
  ): Counted<ArrayOf[K]>;
  scatterVSync(data: unknown, options?: RawCountedOptions): unknown {
    return this.executor.runSync(prepareCounted(this.executor, 'scatterV', data, options, true));
  }

  /**
   * Combines everybody's data and leaves each rank a part of the result, `counts[r]` elements to rank r.
   *
   * @param data - of one length on all ranks.
   * @param options - `counts`, `op`, `out`, `dtype`, `timeoutMs`, `signal`. Without `counts` the parts are as equal as
   *   can be: a remainder goes to the first ranks, one element each.
   */
  async reduceScatterV<D extends A>(
    data: D,
    ...[options]: Options<D, ShareOptions & OpOptions & OutOptions<NewArrays<D>> & AsyncOptions>
  ): Promise<CountedResult<NewArrays<D>>> {
    return this.executor.run(
      prepareCounted(this.executor, 'reduceScatterV', data, options, false),
      options?.signal,
    );
  }
  /** {@link reduceScatterV}, blocking. */
  reduceScatterVSync<D extends A>(
    data: D,
    ...[options]: Options<D, ShareOptions & OpOptions & OutOptions<NewArrays<D>> & CallOptions>
  ): CountedResult<NewArrays<D>> {
    return this.executor.runSync(
      prepareCounted(this.executor, 'reduceScatterV', data, options, true),
    );
  }
}
