import { threadId } from 'node:worker_threads';

import { defaultTimeoutMs } from '../deadline.js';
import { GradlinkError, argumentError } from '../errors.js';
import { native } from '../native/load.js';
import type { NativeCommunicator, NativeJoinOptions } from '../native/communicator.js';
import type { AnyArray } from '../tensor/any-array.js';
import { allocate, arrayOver, elementBytes, parseDType } from '../tensor/dtype.js';
import type { ArrayOf, DType } from '../tensor/dtype.js';
import { assertUsable } from '../tensor/leases.js';
import { Executor } from './executor.js';
import { readJob } from './job.js';
import { joinMpiWorld } from './mpi-world.js';
import { NeighborOperations } from './neighbors.js';
import { prepareReceive, prepareSend } from './message-call.js';
import type {
  AsyncOptions,
  CallOptions,
  Options,
  Received,
  ReceiveOptions,
  RequiredOptions,
  SendOptions,
} from './types.js';
import { integer, maxInt32, milliseconds, nonEmpty, optionsObject } from '../validate.js';

/** As native code has it: far above any machine. */
const maxRanks = 2 ** 16;

/** Options of {@link Communicator.join}. */
export interface JoinOptions {
  /** Ranks that give the same name meet. */
  name: string;
  rank: number;
  size: number;
  /**
   * Keeps jobs with the same names apart, and strangers out; the launcher's secret (GRADLINK_JOB) when absent, the
   * empty string when there is none.
   */
  job?: string | undefined;
  /** Milliseconds until everybody must have come, and the default of every call; 30 000 when absent. */
  timeoutMs?: number | undefined;
  /**
   * The ranks are threads of this one process: data moves straight from one's arrays to the other's. All ranks must
   * say the same. False when absent: the ranks are processes of this host (they may be threads too).
   */
  threads?: boolean | undefined;
}

/** Options of {@link Communicator.world}. */
export interface WorldOptions {
  /** As {@link JoinOptions.timeoutMs}. */
  timeoutMs?: number | undefined;
  /**
   * `'shm'`: the embedded engine, for ranks of one host. `'mpi'`: ranks of an MPI job, on any number of hosts; inside
   * a host they reduce through the embedded engine. `'nccl'`: each rank is a GPU. When absent: `'mpi'` where the ranks
   * are on several hosts, or the launcher says GRADLINK_TRANSPORT=mpi, else `'shm'`. All ranks say the same.
   */
  backend?: 'shm' | 'mpi' | 'nccl' | undefined;
  /**
   * This rank's GPU by the ordinal of its process. With `'nccl'`, when absent, the GPUs are dealt out by rank, and no
   * two ranks may have the same. With `'mpi'` its arrays are then {@link DeviceBuffer}s there, which pass through the
   * memory of the host; when absent they are the host's. Ranks of both kinds may meet.
   */
  gpu?: number | undefined;
}

/** Options of {@link Communicator.nccl}. */
export interface NcclOptions {
  /** The GPU of each rank, all different; all GPUs when absent. */
  gpus?: readonly number[] | undefined;
  /** As {@link JoinOptions.timeoutMs}. */
  timeoutMs?: number | undefined;
}

let groupsOfRanks = 0;
let executorOf: (communicator: Communicator) => Executor;

/**
 * Ranks that exchange and combine arrays. One communicator holds one rank of its group (from {@link join},
 * {@link world}, {@link split}, {@link ranks}), or all of them (from {@link local}, {@link nccl}).
 *
 * Operations of one communicator run in the order they were issued, on a thread of its own. A process with no pending
 * operation exits by itself; {@link close} (or `await using`) leaves in good order.
 */
export class Communicator extends NeighborOperations implements AsyncDisposable {
  readonly size: number;
  /** The first held rank. */
  readonly rank: number;
  readonly heldRanks: readonly number[];
  /**
   * `'shm'`: the embedded engine, over the memory of the host. `'mpi'`: processes of an MPI job. `'nccl'`: ranks are
   * GPUs.
   */
  readonly backend: 'shm' | 'mpi' | 'nccl';
  /** The GPU of each held rank, whose data is a {@link DeviceBuffer} there; empty where arrays are the host's. */
  readonly gpus: readonly number[];
  #ranks: readonly Communicator[] | undefined;
  /** Where this holds all ranks of its process's own group: how long those wait that {@link ranks} makes of it. */
  readonly #group: { readonly timeoutMs: number } | undefined;

  static {
    executorOf = (communicator) => communicator.executor;
  }

  private constructor(wrapped: NativeCommunicator, group?: { readonly timeoutMs: number }) {
    const executor = new Executor(wrapped, group !== undefined && wrapped.gpus.length === 0);
    super(executor);
    this.size = executor.size;
    this.rank = executor.rank;
    this.heldRanks = executor.heldRanks;
    this.backend = wrapped.backend as Communicator['backend'];
    this.gpus = executor.gpus;
    this.#group = group;
  }

  /**
   * One communicator that holds `n` ranks of this process: each call takes all ranks' arrays and is one pass over
   * memory on all cores. It never waits for a peer. Sending, receiving and splitting need one rank: see {@link Communicator.ranks}.
   */
  static local(n: number): Communicator {
    return new Communicator(native().NativeCommunicator.local(integer(n, 'n', 1, maxRanks)), {
      timeoutMs: defaultTimeoutMs,
    });
  }

  /**
   * One communicator that holds a rank for each of these GPUs: each call takes a {@link DeviceBuffer} of each GPU.
   * NCCL moves the data. Sending, receiving, splitting, gossip and windows need one rank: see {@link Communicator.ranks}.
   *
   * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver, a GPU or libnccl.so.2; TypeError for a GPU that is
   *   not there or given twice.
   */
  static async nccl(options?: NcclOptions): Promise<Communicator> {
    const given = optionsObject(options);
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', defaultTimeoutMs);
    const gpus = given.gpus ?? Array.from({ length: native().gpuCount() }, (_, gpu) => gpu);
    if (!Array.isArray(gpus) || gpus.length === 0) {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'gpus', 'an array of at least one GPU', gpus);
    }
    const ordinals = Int32Array.from(gpus as readonly number[], (gpu, i) =>
      integer(gpu, `gpus[${i}]`, 0, maxInt32),
    );
    const opened = await native().NativeCommunicator.openNccl(ordinals, timeoutMs);
    // Alone it is its own only rank.
    return new Communicator(opened, gpus.length === 1 ? undefined : { timeoutMs });
  }

  /**
   * Joins as one rank of `size`; resolves when all have come.
   *
   * @throws GradlinkError ERR_TIMEOUT naming the ranks that did not come; ERR_MISMATCH where sizes differ or a rank is
   *   taken twice.
   */
  static async join(options: JoinOptions): Promise<Communicator> {
    const given = optionsObject(options);
    const size = integer(given.size, 'size', 1, maxRanks);
    const { job = process.env['GRADLINK_JOB'] ?? '', threads = false } = given;
    if (typeof job !== 'string')
      throw argumentError('ERR_INVALID_ARG_TYPE', 'job', 'a string', job);
    if (typeof threads !== 'boolean') {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'threads', 'a boolean', threads);
    }
    const joined = await native().NativeCommunicator.join({
      job,
      name: nonEmpty(given.name, 'name'),
      rank: integer(given.rank, 'rank', 0, size - 1),
      size,
      timeoutMs: milliseconds(given.timeoutMs, 'timeoutMs', defaultTimeoutMs),
      threads,
    });
    return new Communicator(joined);
  }

  /**
   * This process's rank in its job: reads the variables of `gradlink launch`, Open MPI, PMI, Slurm and torchrun, in
   * this order. Alone it is a world of one.
   *
   * In an MPI world an uncaught error and an exit status other than 0 end all processes of the job.
   *
   * @throws GradlinkError ERR_UNSUPPORTED for ranks on several hosts with a backend that joins those of one;
   *   ERR_BACKEND_UNAVAILABLE where the MPI does not load; with `backend: 'nccl'` what {@link nccl} throws; else as
   *   {@link join}.
   */
  static async world(options?: WorldOptions): Promise<Communicator> {
    const { gpu, ...given } = optionsObject(options);
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', defaultTimeoutMs);
    const place = readJob();
    const { backend = place?.backend ?? 'shm' } = given;
    if (place?.severalHosts === true && (backend === 'nccl' || backend === 'shm')) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        `this ${place.launcher} job has ranks on more than one host: backend '${backend}' joins those of one; use 'mpi'`,
      );
    }
    if (backend === 'nccl') {
      // All ranks are on this host, so that the rank is the place among its processes too.
      const own = gpuOf(gpu, place?.rank ?? 0);
      const { job, rank, size } = place ?? { job: '', rank: 0, size: 1 };
      // Another name than the ranks' meeting in the memory of the host, which a program may want too.
      const meeting: NativeJoinOptions = {
        ...{ name: 'world of GPUs', job, rank, size },
        ...{ timeoutMs, threads: false },
      };
      const joined = await native().NativeCommunicator.joinNccl(meeting, own);
      return new Communicator(joined);
    }
    if (backend !== 'mpi' && (backend as unknown) !== 'shm') {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'backend', "'shm', 'mpi' or 'nccl'", backend);
    }
    if (backend === 'mpi') {
      const own = gpu === undefined ? null : integer(gpu, 'gpu', 0, maxInt32);
      return new Communicator(await joinMpiWorld(place, timeoutMs, own));
    }
    if (gpu !== undefined) {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'gpu', "backend 'nccl' or 'mpi' with it", {
        text: `backend '${backend}'`,
      });
    }
    if (place === undefined) return new Communicator(joinAll(1, timeoutMs, [])[0]!);
    const { job, rank, size } = place;
    return Communicator.join({ name: 'world', job, rank, size, timeoutMs });
  }

  /**
   * The ranks of a {@link local} or {@link nccl} communicator as communicators of one rank each, made on first use:
   * they wait for each other, like ranks anywhere. Issue all ranks' calls before awaiting any; a blocking `…Sync` call
   * on one waits for calls that this thread has already issued on the others. Closed with this one.
   *
   * On GPUs the first use blocks while they meet (NCCL takes a second or so), and they are communicators of NCCL beside
   * this one: await what is pending here before calls of theirs, and the other way round, since NCCL lets two
   * communicators of the same GPUs wait for each other for ever.
   *
   * For a communicator that holds one rank: itself.
   */
  get ranks(): readonly Communicator[] {
    const group = this.#group;
    if (group === undefined) return [this];
    return (this.#ranks ??= Object.freeze(
      joinAll(this.size, group.timeoutMs, this.gpus).map((one) => new Communicator(one)),
    ));
  }

  /**
   * Sends an array to one rank; resolves when `data` may be used again: for up to 8 KiB that need not wait for the
   * receive. Messages from one rank with one tag arrive in order.
   *
   * @throws GradlinkError ERR_MISMATCH, on both sides, when the receiver's array is shorter or of another dtype (a
   *   sender that has not waited learns it from its next call).
   */
  async send<A extends AnyArray>(
    data: A,
    ...[options]: RequiredOptions<A, SendOptions & AsyncOptions>
  ): Promise<void> {
    const call = prepareSend(this.executor, data, options);
    const { dtype, peer, tag, timeoutMs } = call;
    const start = (ticket: number) =>
      this.executor.native.send(dtype, call.data, peer, tag, timeoutMs, ticket);
    await this.executor.submit(
      { op: 'send', reads: call.data, writes: null, start },
      options.signal,
    );
  }
  /** {@link send}, blocking. */
  sendSync<A extends AnyArray>(
    data: A,
    ...[options]: RequiredOptions<A, SendOptions & CallOptions>
  ): void {
    const call = prepareSend(this.executor, data, options);
    assertUsable('send', call.data, null);
    this.executor.native.sendSync(call.dtype, call.data, call.peer, call.tag, call.timeoutMs);
  }

  /**
   * Receives one message into `data`; a shorter one leaves the rest as it was.
   *
   * @param options - `from`: the sender, any when absent; `tag`.
   */
  async receive<A extends AnyArray>(
    data: A,
    ...[options]: Options<A, ReceiveOptions & AsyncOptions>
  ): Promise<Received> {
    const call = prepareReceive(this.executor, data, options);
    const { dtype, peer, tag, timeoutMs } = call;
    const start = (ticket: number) =>
      this.executor.native.receive(dtype, call.data, peer, tag, timeoutMs, ticket);
    return this.executor.submit(
      { op: 'receive', reads: null, writes: call.data, start },
      options?.signal,
    );
  }
  /** {@link receive}, blocking. */
  receiveSync<A extends AnyArray>(
    data: A,
    ...[options]: Options<A, ReceiveOptions & CallOptions>
  ): Received {
    const call = prepareReceive(this.executor, data, options);
    assertUsable('receive', null, call.data);
    const { dtype, peer, tag, timeoutMs } = call;
    return this.executor.native.receiveSync(dtype, call.data, peer, tag, timeoutMs);
  }

  /**
   * Collective. Ranks of equal color form a new communicator, ordered by key, then by old rank.
   *
   * @param color - 0 or above; null to take part in none.
   * @param key - the old rank when absent.
   * @returns the new communicator, or null for a null color. Close it on its own.
   */
  override async split(
    color: number | null,
    key = this.rank,
    options?: CallOptions,
  ): Promise<Communicator | null> {
    const group = color === null ? -1 : integer(color, 'color', 0, maxInt32);
    const order = integer(key, 'key', -maxInt32, maxInt32);
    const timeoutMs = milliseconds(optionsObject(options).timeoutMs, 'timeoutMs', -1);
    const part = await this.executor.submit(
      {
        op: 'split',
        reads: null,
        writes: null,
        start: () => this.executor.native.split(group, order, timeoutMs),
      },
      undefined,
    );
    return part === null ? null : new Communicator(part);
  }

  /**
   * A zeroed array in memory that every rank of the host maps: collectives on it are not staged. Local to this rank;
   * freed when it is collected.
   */
  allocShared<K extends DType>(dtype: K, count: number): ArrayOf[K] {
    const number = parseDType(dtype);
    const elements = integer(count, 'count', 0, Number.MAX_SAFE_INTEGER);
    if (elements === 0) return allocate(number, 0) as ArrayOf[K];
    const buffer = this.executor.native.allocShared(elements * elementBytes[number]!);
    return arrayOver(number, buffer, elements) as ArrayOf[K];
  }

  /**
   * Ends pending and later operations on all ranks with ERR_ABORTED and this reason. At any time; the communicator can
   * only be closed afterwards.
   */
  abort(reason = 'abort() was called'): void {
    if (typeof reason !== 'string') {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'reason', 'a string', reason);
    }
    this.executor.native.abort(reason);
    for (const one of this.#ranks ?? []) one.abort(reason);
  }

  /**
   * Waits for pending operations, then leaves; later calls here fail with ERR_CLOSED, calls of peers that need this
   * rank with ERR_PEER_LOST. Idempotent.
   */
  async close(): Promise<void> {
    await Promise.all([
      this.closeNodes(),
      this.executor.close(),
      ...(this.#ranks ?? []).map((one) => one.close()),
    ]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function gpuOf(given: unknown, rank: number): number {
  return given === undefined ? rank % native().gpuCount() : integer(given, 'gpu', 0, maxInt32);
}

/** @param gpus - one for each rank; none where the ranks' arrays are the host's */
function joinAll(size: number, timeoutMs: number, gpus: readonly number[]): NativeCommunicator[] {
  // Unique in the process: threads count their groups apart.
  const name = `ranks-${threadId}-${groupsOfRanks++}`;
  const ordinals = gpus.length > 0 ? Int32Array.from(gpus) : null;
  return native().NativeCommunicator.joinAll(size, name, timeoutMs, ordinals);
}

/** The native side of a communicator, for other parts of this package. */
export function nativeOf(communicator: Communicator): NativeCommunicator {
  return executorOf(communicator).native;
}
