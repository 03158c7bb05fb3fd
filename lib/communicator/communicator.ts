// The two kinds of communicators and how to get them: Communicator is one rank, LocalGroup holds all ranks of this
// process. The operations are in their base classes: collectives.ts, neighbors.ts, messages.ts and base.ts. One file,
// because each class creates the other.
import { withCallStack } from '../call-stack.js';
import { defaultTimeoutMs } from '../time.js';
import { GradlinkError } from '../errors.js';
import type { NativeCommunicator } from '../native/communicator.js';
import { native } from '../native/load.js';
import type { DeviceBuffer } from '../tensor/device-buffer.js';
import type { DeviceDType } from '../tensor/dtype.js';
import type { Rank } from '../topology/rank.js';
import { assertMade, integer, maxInt32, milliseconds, optionsObject } from '../checks.js';
import { allocRegistered } from './base.js';
import { Collectives } from './collectives/collectives.js';
import { Executor } from './executor.js';
import { joinNamed, joinRanks, joinWorld, openLocal, openNccl } from './joining/joining.js';
import type {
  GpuGroupWorldOptions,
  GpuWorldOptions,
  HostWorldOptions,
  JoinOptions,
  NcclOptions,
  WorldOptions,
} from './joining/joining.js';
import { Messages } from './messages.js';
import { subsetOf } from './subset.js';
import { asyncCallNames, callNames } from './calls/option-names.js';
import { timelineVariable } from './call-trace.js';
import type { ArrayIn, AsyncOptions, CallOptions, Memory } from './calls/types.js';
import { worldGroupOf } from './world/world-group.js';
import type { WorldGroup } from './world/world-group.js';

/** Each has a thread of its own. */
const maxOpenRanks = 4096;

let groupOf: <M extends Memory>(
  wrapped: NativeCommunicator,
  memory: M,
  timeoutMs: number,
) => LocalGroup<M>;
let rankOf: <M extends Memory>(wrapped: NativeCommunicator, memory: M) => Communicator<M>;

/**
 * One rank of a group that exchanges arrays, from {@link join}, {@link world}, {@link split}, or
 * {@link LocalGroup.openRanks}. `M` is the memory of its arrays: `'host'` for TypedArrays, `'gpu'` for
 * {@link DeviceBuffer}s on its GPU.
 *
 * Operations of one communicator run in the order of their calls, on its own thread. A process without pending
 * operations exits by itself; {@link close} (or `await using`) leaves the group cleanly.
 */
export class Communicator<out M extends Memory = 'host'>
  extends Messages<M>
  implements AsyncDisposable
{
  /** This rank's number, from 0 to `size - 1`. */
  readonly rank: Rank;

  static {
    rankOf = (wrapped, memory) => new Communicator(wrapped, memory);
  }

  private constructor(wrapped: NativeCommunicator, memory: M) {
    assertMade(
      wrapped,
      native().NativeCommunicator,
      'Communicator',
      'Communicator.join(…), Communicator.world() or openRanks() of Communicator.local(n)',
    );
    super(new Executor(wrapped, false), memory);
    this.rank = this.executor.rank;
  }

  /**
   * A group of `n` ranks of this process: each call takes all ranks' arrays and is one pass over memory on all cores.
   * It never waits for a peer.
   */
  static local(n: number): LocalGroup {
    return groupOf(openLocal(n), 'host', defaultTimeoutMs);
  }

  /**
   * A group with one rank per GPU: each call takes a {@link DeviceBuffer} of each GPU. NCCL moves the data.
   *
   * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver, a GPU or libnccl.so.2; TypeError for a GPU that
   *   does not exist or is given twice.
   */
  static async nccl(options?: NcclOptions): Promise<LocalGroup<'gpu'>> {
    const { opened, timeoutMs } = await withCallStack(() => openNccl(options));
    return groupOf(opened, 'gpu', timeoutMs);
  }

  /**
   * Joins as one rank of `size`; resolves when all have joined.
   *
   * @throws GradlinkError ERR_TIMEOUT naming the missing ranks; ERR_MISMATCH if sizes differ or a rank is taken twice.
   */
  static async join(options: JoinOptions): Promise<Communicator> {
    return new Communicator(await withCallStack(() => joinNamed(options)), 'host');
  }

  /**
   * This process's rank in its job: reads the variables of `gradlink launch`, Open MPI, PMI, Slurm and torchrun, in
   * this order. Without a launcher it is a world of one. With `gpus` this process holds a rank for each: a
   * {@link WorldGroup}.
   *
   * If GRADLINK_TIMELINE names a file, operations are recorded there: see {@link startTimeline}.
   *
   * In an MPI world an uncaught error or a nonzero exit status ends all processes of the job.
   *
   * Over TCP data between hosts are not encrypted, and payloads of more than 4 KiB carry no tag unless
   * GRADLINK_TCP_SEAL is `all`: anyone on the path can read them. docs/hosts.md shows a job inside WireGuard.
   *
   * @throws GradlinkError ERR_UNSUPPORTED for ranks on several hosts with a single-host backend;
   *   ERR_BACKEND_UNAVAILABLE if the MPI does not load; with `backend: 'nccl'` as {@link nccl}; else as {@link join}.
   */
  static world(options?: HostWorldOptions): Promise<Communicator>;
  static world(options: GpuWorldOptions): Promise<Communicator<'gpu'>>;
  static world(options: GpuGroupWorldOptions): Promise<WorldGroup>;
  static world(options: WorldOptions): Promise<Communicator<Memory>>;
  static async world(
    options?: WorldOptions | GpuGroupWorldOptions,
  ): Promise<Communicator<Memory> | WorldGroup> {
    const joined = await withCallStack(() => joinWorld(options));
    const world =
      options?.gpus === undefined
        ? new Communicator<Memory>(joined, joined.gpus.length > 0 ? 'gpu' : 'host')
        : worldGroupOf(joined);
    const timeline = process.env[timelineVariable] ?? '';
    if (timeline !== '') world.startTimeline(timeline);
    return world;
  }

  /**
   * Collective. Ranks with equal colors form a new communicator, ordered by key, then by old rank.
   *
   * @param color - 0 or above; null to join none.
   * @param key - the old rank when absent.
   * @returns the new communicator, or null for a null color. Close it separately.
   */
  override async split(
    color: number | null,
    key: number = this.rank,
    options?: CallOptions,
  ): Promise<Communicator<M> | null> {
    return await this.#part(color, key, options, false);
  }
  /** @internal */
  protected override async splitForCollectives(
    color: number | null,
    key: number,
    options: CallOptions,
  ): Promise<Communicator<M> | null> {
    return await this.#part(color, key, options, true);
  }
  async #part(
    color: number | null,
    key: number,
    options: CallOptions | undefined,
    forCollectives: boolean,
  ): Promise<Communicator<M> | null> {
    const group = color === null ? -1 : integer(color, 'color', 0, maxInt32);
    const order = integer(key, 'key', -maxInt32, maxInt32);
    const given = optionsObject(options, callNames, 'split');
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
    const start = () => this.executor.native.split(group, order, timeoutMs, forCollectives);
    const part = await this.executor.submit(
      { op: 'split', reads: null, writes: null, start },
      undefined,
    );
    return part === null ? null : new Communicator(part, this.memory);
  }

  /**
   * Collective: {@link split} by a list, like Horovod's process sets. All ranks give the same.
   *
   * @param ranks - of this communicator, in the order of the new one.
   * @returns the new communicator, or null on ranks that are not in the list. Close it separately.
   * @throws GradlinkError ERR_MISMATCH on the listed ranks if the lists differ.
   */
  async subset(ranks: readonly Rank[], options?: CallOptions): Promise<Communicator<M> | null> {
    const given = optionsObject(options, callNames, 'subset');
    return subsetOf(ranks, this.size, [this.rank], ([color], [key]) =>
      this.split(color!, key, given),
    );
  }

  /** Whether {@link setJoinable} was called. */
  get joinable(): boolean {
    return this.executor.joinable;
  }

  /**
   * Allows ranks to {@link join} when they run out of data: from now on a small all-gather before each collective tells
   * which ranks have joined, and what the others call. All ranks call it, before the same call and with nothing
   * pending. Idempotent; cannot be undone.
   *
   * For ranks in host memory.
   *
   * @throws GradlinkError ERR_UNSUPPORTED while calls are pending.
   */
  setJoinable(this: Communicator): void {
    this.executor.setJoinable();
  }

  /**
   * For a rank without further data: takes part in the others' calls until all ranks have joined, like Horovod's
   * `join`. It contributes neutral elements: zeros to sums (averages still divide by all ranks), ones to products, the
   * type's limits to `min` and `max`. Later calls of this rank wait for all.
   *
   * Until then the others can call allReduce, reduce, broadcast, scan, exscan, barrier, allGatherV and gatherV, as long
   * as the root has not joined. Other collectives fail with ERR_UNSUPPORTED, and the communicator stays usable.
   * Messages, neighbour calls, windows and communicators of {@link split} do not support it.
   *
   * @param options - `timeoutMs`, the others' limit from one call to the next; `signal`.
   * @returns the rank that joined last, the same on all; the highest of several at once.
   * @throws GradlinkError ERR_UNSUPPORTED without {@link setJoinable}.
   */
  async join(this: Communicator, options?: AsyncOptions): Promise<Rank> {
    const given = optionsObject(options, asyncCallNames, 'join');
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
    const { executor } = this;
    const start = (ticket: number) => executor.native.joinOthers(timeoutMs, ticket);
    return executor.submit({ op: 'join', reads: null, writes: null, start }, given.signal);
  }

  /**
   * Collective. Allocates GPU memory registered with NCCL, which then transfers it directly, through an NVLink switch
   * if there is one. The buffer's `registration` tells the kind: symmetric (NCCL 2.27 and newer), local (2.19), or
   * plain memory. All ranks give the same dtype and count, use such buffers in the same calls, and pass the same
   * slices. Without NCCL, and with GRADLINK_NCCL_REGISTER=no, it is {@link DeviceBuffer.alloc}.
   *
   * @throws GradlinkError ERR_OUT_OF_MEMORY on all ranks if one has no room; ERR_MISMATCH if ranks differ.
   */
  async allocRegistered<K extends DeviceDType>(
    this: Communicator<'gpu'>,
    dtype: K,
    count: number,
    options?: CallOptions,
  ): Promise<DeviceBuffer<K>> {
    const [own] = await allocRegistered(this.executor, dtype, count, options);
    return own!;
  }

  /**
   * Waits for pending operations, then leaves; later calls here fail with ERR_CLOSED, calls of peers that need this
   * rank with ERR_PEER_LOST. Idempotent.
   */
  override async close(): Promise<void> {
    await Promise.all([this.closeNodes(), this.executor.close()]);
  }

  /** As `close()`, at the end of an `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * All ranks of a group within this process, from {@link Communicator.local} and {@link Communicator.nccl}. A collective
 * is one call with a list of arrays, one for each rank. Messages, neighbor calls, windows and splits need single ranks,
 * see {@link openRanks}.
 *
 * Operations run in the order of their calls, on their own thread.
 */
export class LocalGroup<out M extends Memory = 'host'>
  extends Collectives<M, readonly ArrayIn<M>[]>
  implements AsyncDisposable
{
  /** The default deadline of its ranks. */
  readonly #timeoutMs: number;
  #opening: Promise<readonly Communicator<M>[]> | undefined;
  #ranks: readonly Communicator<M>[] = [];
  #aborted: string | undefined;
  #closing: Promise<void> | undefined;

  static {
    groupOf = (wrapped, memory, timeoutMs) => new LocalGroup(wrapped, memory, timeoutMs);
  }

  private constructor(wrapped: NativeCommunicator, memory: M, timeoutMs: number) {
    assertMade(
      wrapped,
      native().NativeCommunicator,
      'LocalGroup',
      'Communicator.local(n) or Communicator.nccl()',
    );
    super(new Executor(wrapped, true), memory);
    this.#timeoutMs = timeoutMs;
  }

  /**
   * A communicator for each rank, made at the first call. They wait for each other like any ranks: issue all ranks'
   * calls before awaiting any. A blocking `…Sync` call waits for calls that this thread has already issued on the
   * others. They are closed and aborted with this group.
   *
   * On GPUs this takes about a second and makes further NCCL communicators. Await pending calls here before calling
   * theirs, and the reverse: two NCCL communicators on the same GPUs can deadlock.
   *
   * @returns the same communicators each time, in rank order.
   * @throws GradlinkError ERR_CLOSED after {@link close}; RangeError for more than 4096 ranks, each with its own
   *   thread.
   */
  async openRanks(): Promise<readonly Communicator<M>[]> {
    if (this.#closing !== undefined) {
      const message = 'openRanks: the group was closed';
      throw new GradlinkError('ERR_CLOSED', message, { op: 'openRanks' });
    }
    integer(this.size, 'the ranks of a group with openRanks()', 1, maxOpenRanks);
    return await (this.#opening ??= this.#openRanks());
  }

  async #openRanks(): Promise<readonly Communicator<M>[]> {
    try {
      const joined = await withCallStack(() => joinRanks(this.size, this.#timeoutMs, this.gpus));
      this.#ranks = Object.freeze(joined.map((one) => rankOf(one, this.memory)));
    } catch (error) {
      // The next call may succeed.
      this.#opening = undefined;
      throw error;
    }
    // Aborted in the meantime.
    if (this.#aborted !== undefined) this.#abortRanks(this.#aborted);
    return this.#ranks;
  }

  /** As {@link Communicator.allocRegistered}: one buffer per rank, to be used together. */
  async allocRegistered<K extends DeviceDType>(
    this: LocalGroup<'gpu'>,
    dtype: K,
    count: number,
    options?: CallOptions,
  ): Promise<DeviceBuffer<K>[]> {
    return allocRegistered(this.executor, dtype, count, options);
  }

  /** As {@link Communicator.abort}; its ranks' operations end too. */
  override abort(reason?: string): void {
    super.abort(reason);
    this.#aborted = reason ?? 'abort() was called';
    this.#abortRanks(this.#aborted);
  }

  #abortRanks(reason: string): void {
    for (const one of this.#ranks) one.abort(reason);
  }

  /**
   * Waits for pending operations, including those of its ranks, and frees them; later calls fail with ERR_CLOSED.
   * Idempotent.
   */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    // The caller of openRanks() already has the error.
    const ranks = await (this.#opening?.catch(() => []) ?? Promise.resolve([]));
    await Promise.all([this.executor.close(), ...ranks.map((one) => one.close())]);
  }

  /** As `close()`, at the end of an `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export { nativeOf } from './base.js';
