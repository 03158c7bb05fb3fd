// Creates native communicators: how a rank finds the others, and groups within a process. The public functions are in
// communicator.ts.
import { threadId } from 'node:worker_threads';

import { defaultTimeoutMs } from '../../time.js';
import { GradlinkError, argumentError, ruleError } from '../../errors.js';
import { native } from '../../native/load.js';
import type {
  NativeCheck,
  NativeCommunicator,
  NativeJoinOptions,
} from '../../native/communicator.js';
import {
  aBoolean,
  assertWellFormed,
  aString,
  integer,
  maxInt32,
  milliseconds,
  notOneOf,
  oneOf,
  optionNames,
  optionsObject,
  wellFormed,
} from '../../checks.js';
import { readJob, type JobPlace } from './job.js';
import { joinMpiWorld, joinTcpWorld } from './hosts-world.js';

/** As in native code: far above any machine. */
const maxRanks = 2 ** 16;

/** Options of {@link Communicator.join}. */
export interface JoinOptions {
  /** Ranks with the same name join each other. */
  name: string;
  /** This process's rank, from 0 to `size - 1`. */
  rank: number;
  /** The number of ranks. */
  size: number;
  /**
   * Separates jobs with the same names and keeps strangers out; the launcher's secret (GRADLINK_JOB) when absent, the
   * empty string when there is none.
   */
  job?: string | undefined;
  /** Milliseconds to wait for all ranks, and the default of every call; 30 000 when absent. */
  timeoutMs?: number | undefined;
  /**
   * The ranks are threads of this process: data moves directly between their arrays. The same on all ranks. False when
   * absent: the ranks are processes of this host (or threads).
   */
  threads?: boolean | undefined;
}

/** Options of {@link Communicator.world} with arrays in host memory. */
export interface HostWorldOptions {
  /** As {@link JoinOptions.timeoutMs}. */
  timeoutMs?: number | undefined;
  /** As {@link WorldOptions.backend}. */
  backend?: 'shm' | 'mpi' | 'tcp' | undefined;
  /** Absent: the ranks reduce in host memory. */
  gpu?: undefined;
  /** Absent: the ranks reduce in host memory. */
  gpus?: undefined;
}

/** Options of {@link Communicator.world} with arrays on GPUs. */
export type GpuWorldOptions = {
  /** As {@link JoinOptions.timeoutMs}. */ timeoutMs?: number | undefined;
  /** Absent: a rank has one GPU here. */
  gpus?: undefined;
} & (
  | {
      /** As {@link WorldOptions.backend}. */
      backend: 'nccl';
      /** As {@link WorldOptions.gpu}. */
      gpu?: number | undefined;
      /** As {@link WorldOptions.check}. */ check?: 'always' | 'first' | 'never' | undefined;
    }
  | {
      /** As {@link WorldOptions.backend}. */
      backend?: 'mpi' | 'tcp' | undefined;
      /** As {@link WorldOptions.gpu}. */
      gpu: number;
    }
);

/** Options of {@link Communicator.world} with several GPU ranks per process. */
export interface GpuGroupWorldOptions {
  /** As {@link JoinOptions.timeoutMs}. */
  timeoutMs?: number | undefined;
  /** Several GPUs per process need NCCL. */
  backend: 'nccl';
  /**
   * This process's GPUs by ordinal, all different, at least one: a rank each, in this order. Processes may have
   * different numbers of them; one that gives `gpu`, or neither, holds one rank.
   */
  gpus: readonly number[];
  /** Absent: `gpus` lists them all. */
  gpu?: undefined;
  /** As {@link WorldOptions.check}. */
  check?: 'always' | 'first' | 'never' | undefined;
}

/** Options of {@link Communicator.world}. */
export interface WorldOptions {
  /** As {@link JoinOptions.timeoutMs}. */
  timeoutMs?: number | undefined;
  /**
   * `'shm'`: the embedded engine, for ranks of one host. `'mpi'`: ranks of an MPI job. `'tcp'`: ranks without MPI,
   * which connect to rank 0 at MASTER_ADDR:MASTER_PORT. Both work on any number of hosts and use the embedded engine
   * within a host. `'nccl'`: each rank is a GPU, on any number of hosts; ranks coordinate over MPI or TCP. When absent:
   * MPI or TCP if the ranks are on several hosts or GRADLINK_TRANSPORT asks for it, else `'shm'`. The same on all
   * ranks.
   */
  backend?: 'shm' | 'mpi' | 'tcp' | 'nccl' | undefined;
  /**
   * This rank's GPU by its ordinal in this process. With `'nccl'`, when absent, the host's GPUs are assigned by local
   * rank; no two ranks may share one. With `'mpi'` and `'tcp'` its arrays are then {@link DeviceBuffer}s, staged
   * through host memory; when absent they are in host memory. Both kinds of ranks may be mixed.
   */
  gpu?: number | undefined;
  /** Absent: a rank has one GPU here. */
  gpus?: undefined;
  /**
   * Which collectives of a GPU world (`'nccl'`) the ranks compare before the launch: `'always'`; `'first'`: those with
   * new lengths or options; `'never'`. An unchecked mismatch ends at the deadline without details. `'always'` when
   * absent.
   */
  check?: 'always' | 'first' | 'never' | undefined;
}

/** Options of {@link Communicator.nccl}. */
export interface NcclOptions {
  /** The GPU of each rank, all different; all GPUs when absent. */
  gpus?: readonly number[] | undefined;
  /** As {@link JoinOptions.timeoutMs}. */
  timeoutMs?: number | undefined;
}

const joinNames = optionNames<JoinOptions>({
  name: true,
  rank: true,
  size: true,
  job: true,
  timeoutMs: true,
  threads: true,
});
const worldNames = optionNames<WorldOptions>({
  timeoutMs: true,
  backend: true,
  gpu: true,
  gpus: true,
  check: true,
});
const ncclNames = optionNames<NcclOptions>({ gpus: true, timeoutMs: true });

export function openLocal(n: unknown): NativeCommunicator {
  return native().NativeCommunicator.local(integer(n, 'n', 1, maxRanks));
}

/** A group with a rank for each GPU, see {@link Communicator.nccl}, and its deadline. */
export async function openNccl(
  options: NcclOptions | undefined,
): Promise<{ readonly opened: NativeCommunicator; readonly timeoutMs: number }> {
  const given = optionsObject(options, ncclNames, 'nccl');
  const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', defaultTimeoutMs);
  const ordinals = ordinalsOf(
    given.gpus ?? Array.from({ length: native().gpuCount() }, (_, gpu) => gpu),
  );
  return { opened: await native().NativeCommunicator.openNccl(ordinals, timeoutMs), timeoutMs };
}

function ordinalsOf(gpus: unknown): Int32Array {
  if (!Array.isArray(gpus) || gpus.length === 0) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'gpus', 'an array of at least one GPU', gpus);
  }
  return Int32Array.from(gpus as readonly number[], (gpu, i) =>
    integer(gpu, `gpus[${i}]`, 0, maxInt32),
  );
}

/** One rank of those with the same name, see {@link Communicator.join}. */
export async function joinNamed(options: JoinOptions): Promise<NativeCommunicator> {
  const given = optionsObject(options, joinNames, 'join');
  const size = integer(given.size, 'size', 1, maxRanks);
  const { job = process.env['GRADLINK_JOB'] ?? '', threads = false } = given;
  aString(job, 'job');
  assertWellFormed(job, 'job');
  aBoolean(threads, 'threads');
  return await native().NativeCommunicator.join({
    job,
    name: wellFormed(given.name, 'name'),
    rank: integer(given.rank, 'rank', 0, size - 1),
    size,
    timeoutMs: milliseconds(given.timeoutMs, 'timeoutMs', defaultTimeoutMs),
    threads,
  });
}

/**
 * This process's ranks in its job, see {@link Communicator.world}.
 *
 * @param options - with `gpus`, a rank for each
 */
export async function joinWorld(
  options: WorldOptions | GpuGroupWorldOptions | undefined,
): Promise<NativeCommunicator> {
  const known: WorldOptions | GpuGroupWorldOptions = optionsObject(options, worldNames, 'world');
  const { gpu, gpus, ...given } = known;
  const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', defaultTimeoutMs);
  const place = readJob();
  const { backend = place?.backend ?? 'shm' } = given;
  if (place?.severalHosts === true && backend === 'shm') {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `this ${place.launcher} job has ranks on more than one host: backend 'shm' joins those of one; use ` +
        `'${place.transport ?? 'mpi'}'`,
    );
  }
  if (backend === 'nccl') {
    const own = gpusOf(gpu, gpus, place?.localRank ?? place?.rank ?? 0);
    const check = checkOf(given.check);
    const transport = acrossHosts(place);
    if (transport === 'mpi') return await joinMpiWorld(place, timeoutMs, own, check);
    if (transport === 'tcp') return await joinTcpWorld(place, timeoutMs, own, check);
    const { job, rank, size } = place ?? { job: '', rank: 0, size: 1 };
    // A name that a program's own communicators in host memory do not use.
    const name = 'world of GPUs';
    const joinOptions: NativeJoinOptions = { name, job, rank, size, timeoutMs, threads: false };
    return await native().NativeCommunicator.joinNccl(joinOptions, own, check);
  }
  const ofNccl = given.check !== undefined ? 'check' : gpus !== undefined ? 'gpus' : undefined;
  if (ofNccl !== undefined) {
    throw ruleError('ERR_INVALID_ARG_VALUE', `${ofNccl} needs backend 'nccl', not '${backend}'`);
  }
  if (backend === 'mpi' || backend === 'tcp') {
    const own = gpu === undefined ? null : Int32Array.of(integer(gpu, 'gpu', 0, maxInt32));
    const join = backend === 'mpi' ? joinMpiWorld : joinTcpWorld;
    return await join(place, timeoutMs, own);
  }
  if ((backend as unknown) !== 'shm') {
    throw notOneOf(backend, 'backend', ['shm', 'mpi', 'tcp', 'nccl']);
  }
  if (gpu !== undefined) {
    const rule = `gpu needs backend 'nccl', 'mpi' or 'tcp', not '${backend}'`;
    throw ruleError('ERR_INVALID_ARG_VALUE', rule);
  }
  if (place === undefined) return joinOnHost(1, timeoutMs)[0]!;
  const { job, rank, size } = place;
  return await joinNamed({ name: 'world', job, rank, size, timeoutMs });
}

function checkOf(given: unknown): NativeCheck {
  return given === undefined ? 'always' : oneOf(given, 'check', ['always', 'first', 'never']);
}

/** How the ranks of a job on several hosts coordinate; undefined on a single host. */
function acrossHosts(place: JobPlace | undefined): 'mpi' | 'tcp' | undefined {
  if (place === undefined) return undefined;
  return place.severalHosts || place.backend !== 'shm' ? place.transport : undefined;
}

function gpusOf(gpu: unknown, gpus: unknown, rank: number): Int32Array {
  if (gpus !== undefined) {
    if (gpu === undefined) return ordinalsOf(gpus);
    throw ruleError('ERR_INVALID_ARG_VALUE', 'gpu and gpus cannot be combined');
  }
  return Int32Array.of(
    gpu === undefined ? rank % native().gpuCount() : integer(gpu, 'gpu', 0, maxInt32),
  );
}

let groupsOfRanks = 0;

/** Unique in the process, although threads count separately. */
function groupName(): string {
  return `ranks-${threadId}-${groupsOfRanks++}`;
}

/**
 * A communicator for each rank of a group of this process.
 *
 * @param gpus - of each rank; empty for host memory
 */
export async function joinRanks(
  size: number,
  timeoutMs: number,
  gpus: readonly number[],
): Promise<NativeCommunicator[]> {
  return gpus.length === 0 ? joinOnHost(size, timeoutMs) : await joinOnGpus(gpus, timeoutMs);
}

/** In host memory they join at once, before this thread can do anything else. */
function joinOnHost(size: number, timeoutMs: number): NativeCommunicator[] {
  return native().NativeCommunicator.joinAll(size, groupName(), timeoutMs, null);
}

async function joinOnGpus(
  gpus: readonly number[],
  timeoutMs: number,
): Promise<NativeCommunicator[]> {
  const joinOptions = { job: '', name: groupName(), size: gpus.length, timeoutMs, threads: true };
  const joining = gpus.map((gpu, rank) =>
    native().NativeCommunicator.joinNccl({ ...joinOptions, rank }, Int32Array.of(gpu), 'always'),
  );
  const settled = await Promise.allSettled(joining);
  const joined = settled.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed === undefined) return joined;
  await Promise.allSettled(joined.map((one) => one.close()));
  throw failed.reason;
}
