// Collectives with counts: ranks bring and get different lengths, and results tell the length from each.
// counted-call.ts validates their arguments.
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
 * The ranks exchange their counts before data moves. If they do not fit (other operations, types, roots; a short `out`;
 * unexpected counts), every rank's call ends with the same `ERR_MISMATCH`, and the communicator stays usable. `out` may
 * be longer than the result. Without it the result is a new array; GPUs then need counts known in advance.
 */
export abstract class CountedCollectives<
  M extends Memory,
  A extends RankData,
> extends CommunicatorBase<M> {
  /**
   * Sends a part of each rank's data to each rank, `splits[r]` elements to rank r.
   *
   * @param data - the parts in rank order.
   * @param options - `splits`, `receiveSplits`, `out`, `dtype`, `timeoutMs`, `signal`; of a group lists of them, one
   *   for each rank.
   * @returns the received elements in rank order, and the count from each.
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
   * Gives all ranks the data of all ranks, of any length each.
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
   * @param data - the root's array with the parts in rank order; elsewhere anything nullish.
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
   * Combines the data of all ranks and gives rank r `counts[r]` elements of the result.
   *
   * @param data - of the same length on all ranks.
   * @param options - `counts`, `op`, `out`, `dtype`, `timeoutMs`, `signal`. Without `counts` the parts are as equal as
   *   possible: a remainder goes to the first ranks, one element each.
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
