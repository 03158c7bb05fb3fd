// The collectives as promises and blocking variants. collective-call.ts validates their arguments.
import type { AnyArray } from '../../tensor/any-array.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import type { ArrayOf, DType } from '../../tensor/dtype.js';
import { adasum, adasumOf, adasumSyncOf } from './adasum.js';
import { prepare, prepareBarrier } from '../calls/collective-call.js';
import { CountedCollectives } from './counted.js';
import type { RawOptions } from '../calls/rank-arrays.js';
import type { ReduceOp } from '../calls/reduce-op.js';
import type {
  ArrayOfRank,
  NamedAsyncOptions,
  NamedCallOptions,
  DTypeOption,
  Memory,
  NewArrays,
  NothingGiven,
  Options,
  OutOptions,
  RankData,
  ReduceOptions,
  RootOptions,
  SameArrays,
  ScatterCount,
} from '../calls/types.js';

interface AsyncRaw extends RawOptions {
  readonly signal?: AbortSignal | undefined;
}

/** {@link ReduceOptions} of all-reduce, with one more op in host memory. */
type AllReduceOptions<D> = Omit<ReduceOptions<D>, 'op'> & {
  op?: ReduceOp | ([ArrayOfRank<D>] extends [DeviceBuffer] ? never : 'adasum') | undefined;
};

/** {@link ReduceOptions} of scans, without averages, whose divisor would be ambiguous. */
type ScanOptions<D> = ReduceOptions<D> & { op?: Exclude<ReduceOp, 'avg'> | undefined };

/**
 * The collectives of a {@link Communicator} with one array `A`, and of a {@link LocalGroup} with a list, one for each
 * rank.
 *
 * All ranks call the same collectives in the same order, with equal counts, dtypes, ops and roots; anything else is
 * `ERR_MISMATCH` on every rank. Each resolves (its `…Sync` twin returns) when this communicator's part is done. The
 * blocking variant is for tight loops, and only if no peer needs this thread. A worker thread that is terminated inside
 * one ends with the call, at its deadline at the latest.
 *
 * All reject with (or throw) a {@link GradlinkError} when a peer fails, and a `TypeError` or `RangeError` with a `code`
 * for misuse, which leaves the communicator usable. Until the promise settles, do not touch the operation's output and
 * do not write to its input.
 */
export abstract class Collectives<M extends Memory, A extends RankData> extends CountedCollectives<
  M,
  A
> {
  /**
   * Combines the data of all ranks; every rank gets the same bits.
   *
   * Op `'adasum'` averages vectors as far as they are parallel and adds them as far as they are orthogonal, pair by
   * pair: `(1 - a·b / 2a²) a + (1 - a·b / 2b²) b`. Between processes that takes several steps: await it before the next
   * call.
   *
   * @param data - `count` elements, replaced by the result without `out`.
   * @param options - `op`, `out` of `count` elements, `dtype`, `name`, `timeoutMs`, `signal`.
   * @returns `out`, or `data`.
   */
  async allReduce<D extends A, O extends SameArrays<D> | NewArrays<D> = SameArrays<D>>(
    data: D,
    ...[options]: Options<D, AllReduceOptions<D> & OutOptions<O> & NamedAsyncOptions>
  ): Promise<O> {
    if (options?.op === adasum) {
      return (await adasumOf(this.executor, data, options)) as O;
    }
    return this.executor.run(
      prepare(this.executor, 'allReduce', data, options, false),
      options?.signal,
    );
  }
  /** {@link allReduce}, blocking. */
  allReduceSync<D extends A, O extends SameArrays<D> | NewArrays<D> = SameArrays<D>>(
    data: D,
    ...[options]: Options<D, AllReduceOptions<D> & OutOptions<O> & NamedCallOptions>
  ): O {
    if (options?.op === adasum) {
      return adasumSyncOf(this.executor, data, options) as O;
    }
    return this.executor.runSync(prepare(this.executor, 'allReduce', data, options, true));
  }

  /**
   * As {@link allReduce}, but only the root gets the result.
   *
   * @returns on the root `out`, or `data`; elsewhere undefined. Of a group `out` is the root's array.
   */
  async reduce<D extends A>(
    data: D,
    ...[options]: Options<
      D,
      ReduceOptions<D> & RootOptions & OutOptions<ArrayOfRank<NewArrays<D>>> & NamedAsyncOptions
    >
  ): Promise<ArrayOfRank<D> | undefined> {
    return this.executor.run(
      prepare(this.executor, 'reduce', data, options, false),
      options?.signal,
    );
  }
  /** {@link reduce}, blocking. */
  reduceSync<D extends A>(
    data: D,
    ...[options]: Options<
      D,
      ReduceOptions<D> & RootOptions & OutOptions<ArrayOfRank<NewArrays<D>>> & NamedCallOptions
    >
  ): ArrayOfRank<D> | undefined {
    return this.executor.runSync(prepare(this.executor, 'reduce', data, options, true));
  }

  /**
   * Copies the root's data to all ranks.
   *
   * @returns `data`.
   */
  async broadcast<D extends A>(
    data: D,
    ...[options]: Options<D, RootOptions & NamedAsyncOptions>
  ): Promise<SameArrays<D>> {
    return this.executor.run(
      prepare(this.executor, 'broadcast', data, options, false),
      options?.signal,
    );
  }
  /** {@link broadcast}, blocking. */
  broadcastSync<D extends A>(
    data: D,
    ...[options]: Options<D, RootOptions & NamedCallOptions>
  ): SameArrays<D> {
    return this.executor.runSync(prepare(this.executor, 'broadcast', data, options, true));
  }

  /**
   * Gives all ranks the data of all ranks, in rank order.
   *
   * @param data - `count` elements; may be the rank's own block of `out`.
   * @param options - `out` of `size * count` elements (made when absent), `dtype`, `name`, `timeoutMs`, `signal`.
   */
  async allGather<D extends A>(
    data: D,
    ...[options]: Options<D, OutOptions<NewArrays<D>> & NamedAsyncOptions>
  ): Promise<NewArrays<D>> {
    return this.executor.run(
      prepare(this.executor, 'allGather', data, options, false),
      options?.signal,
    );
  }
  /** {@link allGather}, blocking. */
  allGatherSync<D extends A>(
    data: D,
    ...[options]: Options<D, OutOptions<NewArrays<D>> & NamedCallOptions>
  ): NewArrays<D> {
    return this.executor.runSync(prepare(this.executor, 'allGather', data, options, true));
  }

  /**
   * Combines the data of all ranks and gives rank r block r of the result.
   *
   * @param data - `size * count` elements.
   * @param options - `op`, `out` of `count` elements (made when absent; may be the rank's own block of `data`).
   */
  async reduceScatter<D extends A>(
    data: D,
    ...[options]: Options<D, ReduceOptions<D> & OutOptions<NewArrays<D>> & NamedAsyncOptions>
  ): Promise<NewArrays<D>> {
    return this.executor.run(
      prepare(this.executor, 'reduceScatter', data, options, false),
      options?.signal,
    );
  }
  /** {@link reduceScatter}, blocking. */
  reduceScatterSync<D extends A>(
    data: D,
    ...[options]: Options<D, ReduceOptions<D> & OutOptions<NewArrays<D>> & NamedCallOptions>
  ): NewArrays<D> {
    return this.executor.runSync(prepare(this.executor, 'reduceScatter', data, options, true));
  }

  /**
   * Block j of rank i's data becomes block i of rank j's result.
   *
   * @param data - `size * count` elements.
   * @param options - `out` of the same length (made when absent), separate from `data`.
   */
  async allToAll<D extends A>(
    data: D,
    ...[options]: Options<D, OutOptions<NewArrays<D>> & NamedAsyncOptions>
  ): Promise<NewArrays<D>> {
    return this.executor.run(
      prepare(this.executor, 'allToAll', data, options, false),
      options?.signal,
    );
  }
  /** {@link allToAll}, blocking. */
  allToAllSync<D extends A>(
    data: D,
    ...[options]: Options<D, OutOptions<NewArrays<D>> & NamedCallOptions>
  ): NewArrays<D> {
    return this.executor.runSync(prepare(this.executor, 'allToAll', data, options, true));
  }

  /**
   * As {@link allGather}, but only the root gets the result.
   *
   * @returns on the root `out` or a new array of `size * count` elements; elsewhere undefined. Of a group
   *   `out` is the root's array.
   */
  async gather<D extends A>(
    data: D,
    ...[options]: Options<
      D,
      RootOptions & OutOptions<ArrayOfRank<NewArrays<D>>> & NamedAsyncOptions
    >
  ): Promise<ArrayOfRank<NewArrays<D>> | undefined> {
    return this.executor.run(
      prepare(this.executor, 'gather', data, options, false),
      options?.signal,
    );
  }
  /** {@link gather}, blocking. */
  gatherSync<D extends A>(
    data: D,
    ...[options]: Options<D, RootOptions & OutOptions<ArrayOfRank<NewArrays<D>>> & NamedCallOptions>
  ): ArrayOfRank<NewArrays<D>> | undefined {
    return this.executor.runSync(prepare(this.executor, 'gather', data, options, true));
  }

  /**
   * Gives rank r block r of the root's data.
   *
   * @param data - the root's array of `size * count` elements; elsewhere anything nullish.
   * @param options - `out` of `count` elements (of a group: one each), or, on a rank without data,
   *   `count` and `dtype` of the array to make.
   */
  scatter<O extends A>(
    data: ArrayOfRank<O> | null | undefined,
    options: { out: O } & RootOptions & DTypeOption<O> & NamedAsyncOptions,
  ): Promise<SameArrays<O>>;
  scatter<B extends Extract<A, AnyArray>>(
    data: B,
    ...options: Options<B, RootOptions & NamedAsyncOptions>
  ): Promise<NewArrays<B>>;
  scatter<K extends DType>(
    data: NothingGiven<A>,
    options: ScatterCount<K> & NamedAsyncOptions,
  ): Promise<ArrayOf[K]>;
  async scatter(data: unknown, options?: AsyncRaw): Promise<unknown> {
    return this.executor.run(
      prepare(this.executor, 'scatter', data, options, false),
      options?.signal,
    );
  }
  /** {@link scatter}, blocking. */
  scatterSync<O extends A>(
    data: ArrayOfRank<O> | null | undefined,
    options: { out: O } & RootOptions & DTypeOption<O> & NamedCallOptions,
  ): SameArrays<O>;
  scatterSync<B extends Extract<A, AnyArray>>(
    data: B,
    ...options: Options<B, RootOptions & NamedCallOptions>
  ): NewArrays<B>;
  scatterSync<K extends DType>(
    data: NothingGiven<A>,
    options: ScatterCount<K> & NamedCallOptions,
  ): ArrayOf[K];
  scatterSync(data: unknown, options?: RawOptions): unknown {
    return this.executor.runSync(prepare(this.executor, 'scatter', data, options, true));
  }

  /**
   * Inclusive prefix reduction: rank r gets that of ranks 0 to r (MPI_Scan). The result is bit-equal to a loop over
   * these ranks; on GPUs to NCCL's sums.
   *
   * @param data - `count` elements, replaced by the result without `out`.
   * @param options - `op` except `'avg'`; `out` of `count` elements, `dtype`, `name`, `timeoutMs`, `signal`.
   * @returns `out`, or `data`.
   * @throws GradlinkError ERR_INVALID_ARG_VALUE for `op: 'avg'`.
   */
  async scan<D extends A, O extends SameArrays<D> | NewArrays<D> = SameArrays<D>>(
    data: D,
    ...[options]: Options<D, ScanOptions<D> & OutOptions<O> & NamedAsyncOptions>
  ): Promise<O> {
    return this.executor.run(prepare(this.executor, 'scan', data, options, false), options?.signal);
  }
  /** {@link scan}, blocking. */
  scanSync<D extends A, O extends SameArrays<D> | NewArrays<D> = SameArrays<D>>(
    data: D,
    ...[options]: Options<D, ScanOptions<D> & OutOptions<O> & NamedCallOptions>
  ): O {
    return this.executor.runSync(prepare(this.executor, 'scan', data, options, true));
  }

  /**
   * Exclusive {@link scan}: rank r gets the reduction of ranks 0 to r - 1 (MPI_Exscan). Rank 0 gets the neutral
   * element: 0 for sum, 1 for prod, the type's greatest value for min and its least for max (infinities for floats). A
   * sum of one count per rank gives each rank's offset in a joint array.
   *
   * @param data - `count` elements, replaced by the result without `out`.
   * @param options - as of {@link scan}.
   * @returns `out`, or `data`.
   * @throws GradlinkError ERR_INVALID_ARG_VALUE for `op: 'avg'`.
   */
  async exscan<D extends A, O extends SameArrays<D> | NewArrays<D> = SameArrays<D>>(
    data: D,
    ...[options]: Options<D, ScanOptions<D> & OutOptions<O> & NamedAsyncOptions>
  ): Promise<O> {
    return this.executor.run(
      prepare(this.executor, 'exscan', data, options, false),
      options?.signal,
    );
  }
  /** {@link exscan}, blocking. */
  exscanSync<D extends A, O extends SameArrays<D> | NewArrays<D> = SameArrays<D>>(
    data: D,
    ...[options]: Options<D, ScanOptions<D> & OutOptions<O> & NamedCallOptions>
  ): O {
    return this.executor.runSync(prepare(this.executor, 'exscan', data, options, true));
  }

  /** Resolves when every rank has called it. */
  async barrier(options?: NamedAsyncOptions): Promise<void> {
    return this.executor.run(prepareBarrier(options, false), options?.signal);
  }
  /** {@link barrier}, blocking. */
  barrierSync(options?: NamedCallOptions): void {
    this.executor.runSync(prepareBarrier(options, true));
  }
}
