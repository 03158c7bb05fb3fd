import { GradlinkError } from '../errors.js';
import type { AnyArray } from '../tensor/any-array.js';
import type { ArrayOf, DType } from '../tensor/dtype.js';
import { integer, milliseconds, optionsObject } from '../validate.js';
import { prepare, prepareBarrier } from './collective-call.js';
import type { CollectiveCall } from './collective-call.js';
import type { Executor } from './executor.js';
import type { RawOptions } from './rank-arrays.js';
import type {
  AsyncOptions,
  CallOptions,
  Data,
  DTypeOption,
  ElementOf,
  FusionOptions,
  Given,
  Like,
  OpOptions,
  Options,
  OutOptions,
  RootOptions,
  ScatterCount,
} from './types.js';

interface AsyncRaw extends RawOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * The collectives of a {@link Communicator}.
 *
 * All ranks call the same collectives in the same order, with equal counts, dtypes, ops and roots; anything else is
 * `ERR_MISMATCH` on every rank. Each resolves (its `…Sync` twin returns) when this communicator's part is done. The
 * twin blocks the calling thread: for tight loops, and wherever no peer needs this thread to get on. A worker thread
 * that is terminated inside one ends when the call does, at its deadline at the latest.
 *
 * All reject with (the twin throws) a {@link GradlinkError} when a peer fails, and a `TypeError` or `RangeError` with
 * a `code` for misuse, which leaves the communicator usable. Until the promise settles the arrays belong to the
 * operation: what it writes may not be touched, what it reads may not be written.
 */
export abstract class Collectives {
  /** @internal */
  protected readonly executor: Executor;

  /** @internal */
  protected constructor(executor: Executor) {
    this.executor = executor;
  }

  /**
   * Combines everybody's data; every rank gets the same bits.
   *
   * @param data - `count` elements, the result's place when there is no `out`.
   * @param options - `op`, `out` of `count` elements, `dtype`, `timeoutMs`, `signal`.
   * @returns `out`, or `data`.
   */
  async allReduce<D extends Data, O extends Given<D> | Like<D> = Given<D>>(
    data: D,
    ...[options]: Options<D, OpOptions & OutOptions<O> & AsyncOptions>
  ): Promise<O> {
    return this.#run(prepare(this.executor, 'allReduce', data, options), options);
  }
  /**
   * Lets small arrays go together from now on: calls of allReduce and neighborAllReduce that were issued in a row, of
   * one type, operation and weights, are packed, moved as one and unpacked. How many is agreed upon between the ranks,
   * which costs a small call for each group. Off at first. Blocking calls, and every other operation, are not part of
   * it and keep their place in the order.
   *
   * All ranks set the same. For ranks in the memory of the host.
   */
  setFusion(options?: FusionOptions): void {
    const given = optionsObject(options);
    const bytes = integer(given.thresholdBytes ?? 8 * 2 ** 20, 'thresholdBytes', 0, 2 ** 31);
    const waitMs = given.cycleMs === 0 ? 0 : milliseconds(given.cycleMs, 'cycleMs', 0);
    if (this.executor.gpus.length > 0) {
      const message = 'setFusion: for ranks in the memory of the host';
      throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'setFusion', usable: true });
    }
    this.executor.native.setFusion(bytes, waitMs);
  }

  /** {@link allReduce}, blocking. */
  allReduceSync<D extends Data, O extends Given<D> | Like<D> = Given<D>>(
    data: D,
    ...[options]: Options<D, OpOptions & OutOptions<O> & CallOptions>
  ): O {
    return this.#runSync(prepare(this.executor, 'allReduce', data, options));
  }

  /**
   * As {@link allReduce}, but only the root gets the result.
   *
   * @returns on the root `out`, or `data`; elsewhere undefined. With several held ranks `out` is the root's array.
   */
  async reduce<D extends Data>(
    data: D,
    ...[options]: Options<
      D,
      OpOptions & RootOptions & OutOptions<ElementOf<Like<D>>> & AsyncOptions
    >
  ): Promise<ElementOf<D> | undefined> {
    return this.#run(prepare(this.executor, 'reduce', data, options), options);
  }
  /** {@link reduce}, blocking. */
  reduceSync<D extends Data>(
    data: D,
    ...[options]: Options<D, OpOptions & RootOptions & OutOptions<ElementOf<Like<D>>> & CallOptions>
  ): ElementOf<D> | undefined {
    return this.#runSync(prepare(this.executor, 'reduce', data, options));
  }

  /**
   * Copies the root's data to everybody's.
   *
   * @returns `data`.
   */
  async broadcast<D extends Data>(
    data: D,
    ...[options]: Options<D, RootOptions & AsyncOptions>
  ): Promise<Given<D>> {
    return this.#run(prepare(this.executor, 'broadcast', data, options), options);
  }
  /** {@link broadcast}, blocking. */
  broadcastSync<D extends Data>(
    data: D,
    ...[options]: Options<D, RootOptions & CallOptions>
  ): Given<D> {
    return this.#runSync(prepare(this.executor, 'broadcast', data, options));
  }

  /**
   * Gives everybody everybody's data, one rank after the other.
   *
   * @param data - `count` elements; may be the rank's own block of `out`.
   * @param options - `out` of `size * count` elements (made when absent), `dtype`, `timeoutMs`, `signal`.
   */
  async allGather<D extends Data>(
    data: D,
    ...[options]: Options<D, OutOptions<Like<D>> & AsyncOptions>
  ): Promise<Like<D>> {
    return this.#run(prepare(this.executor, 'allGather', data, options), options);
  }
  /** {@link allGather}, blocking. */
  allGatherSync<D extends Data>(
    data: D,
    ...[options]: Options<D, OutOptions<Like<D>> & CallOptions>
  ): Like<D> {
    return this.#runSync(prepare(this.executor, 'allGather', data, options));
  }

  /**
   * Combines everybody's data and leaves rank r block r of the result.
   *
   * @param data - `size * count` elements.
   * @param options - `op`, `out` of `count` elements (made when absent; may be the rank's own block of `data`).
   */
  async reduceScatter<D extends Data>(
    data: D,
    ...[options]: Options<D, OpOptions & OutOptions<Like<D>> & AsyncOptions>
  ): Promise<Like<D>> {
    return this.#run(prepare(this.executor, 'reduceScatter', data, options), options);
  }
  /** {@link reduceScatter}, blocking. */
  reduceScatterSync<D extends Data>(
    data: D,
    ...[options]: Options<D, OpOptions & OutOptions<Like<D>> & CallOptions>
  ): Like<D> {
    return this.#runSync(prepare(this.executor, 'reduceScatter', data, options));
  }

  /**
   * Block j of rank i's data becomes block i of rank j's result.
   *
   * @param data - `size * count` elements.
   * @param options - `out` of as many (made when absent), apart from `data`.
   */
  async allToAll<D extends Data>(
    data: D,
    ...[options]: Options<D, OutOptions<Like<D>> & AsyncOptions>
  ): Promise<Like<D>> {
    return this.#run(prepare(this.executor, 'allToAll', data, options), options);
  }
  /** {@link allToAll}, blocking. */
  allToAllSync<D extends Data>(
    data: D,
    ...[options]: Options<D, OutOptions<Like<D>> & CallOptions>
  ): Like<D> {
    return this.#runSync(prepare(this.executor, 'allToAll', data, options));
  }

  /**
   * As {@link allGather}, but only the root gets the result.
   *
   * @returns on the root `out` or a new array of `size * count` elements; elsewhere undefined. With several held
   *   ranks `out` is the root's array.
   */
  async gather<D extends Data>(
    data: D,
    ...[options]: Options<D, RootOptions & OutOptions<ElementOf<Like<D>>> & AsyncOptions>
  ): Promise<ElementOf<Like<D>> | undefined> {
    return this.#run(prepare(this.executor, 'gather', data, options), options);
  }
  /** {@link gather}, blocking. */
  gatherSync<D extends Data>(
    data: D,
    ...[options]: Options<D, RootOptions & OutOptions<ElementOf<Like<D>>> & CallOptions>
  ): ElementOf<Like<D>> | undefined {
    return this.#runSync(prepare(this.executor, 'gather', data, options));
  }

  /**
   * Gives rank r block r of the root's data.
   *
   * @param data - the root's array of `size * count` elements; elsewhere anything nullish.
   * @param options - `out` of `count` elements (with several held ranks: one each), or, on a rank without data,
   *   `count` and `dtype` of the array to make.
   */
  scatter<O extends Data>(
    data: ElementOf<O> | null | undefined,
    options: { out: O } & RootOptions & DTypeOption<O> & AsyncOptions,
  ): Promise<Given<O>>;
  scatter<A extends AnyArray>(
    data: A,
    ...options: Options<A, RootOptions & AsyncOptions>
  ): Promise<Like<A>>;
  scatter<K extends DType>(
    data: null | undefined,
    options: ScatterCount<K> & AsyncOptions,
  ): Promise<ArrayOf[K]>;
  async scatter(data: unknown, options?: AsyncRaw): Promise<unknown> {
    return this.#run(prepare(this.executor, 'scatter', data, options), options);
  }
  /** {@link scatter}, blocking. */
  scatterSync<O extends Data>(
    data: ElementOf<O> | null | undefined,
    options: { out: O } & RootOptions & DTypeOption<O> & CallOptions,
  ): Given<O>;
  scatterSync<A extends AnyArray>(
    data: A,
    ...options: Options<A, RootOptions & CallOptions>
  ): Like<A>;
  scatterSync<K extends DType>(
    data: null | undefined,
    options: ScatterCount<K> & CallOptions,
  ): ArrayOf[K];
  scatterSync(data: unknown, options?: RawOptions): unknown {
    return this.#runSync(prepare(this.executor, 'scatter', data, options));
  }

  /** Resolves when every rank has called it. */
  async barrier(options?: AsyncOptions): Promise<void> {
    return this.#run(prepareBarrier(options), options);
  }
  /** {@link barrier}, blocking. */
  barrierSync(options?: CallOptions): void {
    this.#runSync(prepareBarrier(options));
  }

  async #run<R>(call: CollectiveCall, options: AsyncRaw | undefined): Promise<R> {
    await this.executor.run(call, options?.signal);
    return call.result as R;
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- one cast here, not one a method
  #runSync<R>(call: CollectiveCall): R {
    this.executor.runSync(call);
    return call.result as R;
  }
}
