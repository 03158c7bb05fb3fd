// The ranks that a sweep of collectives runs on: of this process, or this process's place in a job.
import { hostname } from 'node:os';

import { Communicator, nativeOf } from '../../communicator/communicator.js';
import type { Memory } from '../../communicator/calls/types.js';
import { hostsOfRanks, textsOfRanks } from '../../communicator/joining/hosts.js';
import { native } from '../../native/load.js';
import type { NativeCommunicator } from '../../native/communicator.js';
import type { NativeEstimated, NativeTiming, NativeTimingOptions } from '../../native/measure.js';
import { timerBetweenCores, type TimeBetweenCores } from '../machine/cores-limit.js';
import { hostMessages, type Messages } from '../hosts/messages.js';
import { gatherNumbers, jobSize } from '../job.js';
import type { RankInfo } from '../common-run.js';

/** How the ranks of one process are held. */
export type Engine = 'local' | 'threads';

/** Ranks that time collectives together. */
export interface SweepWorld {
  readonly size: number;
  /** First rank of this process: 0 prints. */
  readonly rank: number;
  /** Processes that the ranks are in. */
  readonly processes: number;
  readonly ranks: readonly RankInfo[];
  /** Runs one measurement on all ranks that this process holds. */
  time(options: NativeTimingOptions): Promise<NativeTiming>;
  /** What NCCL expects each of these calls to take; null where nobody knows. */
  estimate(
    calls: readonly NativeEstimated[],
    timeoutMs: number,
  ): Promise<readonly (number | null)[]>;
  /** Waits for all processes. */
  barrier(): Promise<void>;
  /** What the first rank of each process brings, in the order of ranks; all bring equally many. */
  gather(values: readonly number[]): Promise<readonly (readonly number[])[]>;
  /** Between ranks that are processes of one host; absent elsewhere. */
  readonly timeBetweenCores?: TimeBetweenCores;
  /** Between ranks of a job; absent where all ranks are of this process. */
  readonly openMessages?: (bytes: number) => Promise<Messages>;
  /** What each process says, at most so many bytes of it, in the order of ranks; absent where all are of this process. */
  readonly texts?: (text: string, mostBytes: number) => Promise<readonly string[]>;
  /** Collective, of a job: the ranks of this one's color as a world of their own, which is closed by itself. */
  readonly split?: (color: number) => Promise<SweepWorld>;
  close(): Promise<void>;
}

/** Times on all communicators of this process at once; every rank gets the same result. */
export async function timeOnAll(
  members: readonly NativeCommunicator[],
  options: NativeTimingOptions,
): Promise<NativeTiming> {
  const all = await settled(members.map((one) => native().timeCollective(one, options)));
  const firstWrong = all.find((one) => one.firstWrong !== null)?.firstWrong ?? null;
  return { ...all[0]!, firstWrong };
}

/** Asks all communicators of this process at once; every rank gets the same estimates. */
export async function estimateOnAll(
  members: readonly NativeCommunicator[],
  calls: readonly NativeEstimated[],
  timeoutMs: number,
): Promise<readonly (number | null)[]> {
  const all = members.map((one) => native().estimateCollectives(one, calls, timeoutMs));
  return (await settled(all))[0]!;
}

/** All are awaited, so that a failure leaves none behind. */
async function settled<T>(all: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(all);
  return await Promise.all(all);
}

/** The ranks of a job, a process each. */
export async function ranksOfJob(world: Communicator): Promise<RankInfo[]> {
  const pids = await world.allGather(Int32Array.of(process.pid));
  const hosts = await hostsOfRanks(world);
  return [...pids].map((pid, rank) => ({ rank, pid, host: hosts[rank] ?? '' }));
}

/** What the worlds of a job have that goes through the memory of the host. */
export function throughHost(
  control: Communicator,
): Pick<SweepWorld, 'barrier' | 'gather'> & Required<Pick<SweepWorld, 'texts'>> {
  return {
    barrier: () => control.barrier(),
    gather: (values) => gatherNumbers(control, values),
    texts: (text, mostBytes) => textsOfRanks(control, text, mostBytes),
  };
}

/** The communicator of the ranks of one color. */
export async function partOf<M extends Memory>(
  world: Communicator<M>,
  color: number,
): Promise<Communicator<M>> {
  const part = await world.split(color);
  if (part === null) throw new RangeError('a rank is in the part of its color');
  return part;
}

/** Of ranks in the memory of the host. */
const noEstimates = (calls: readonly NativeEstimated[]): Promise<readonly null[]> =>
  Promise.resolve(calls.map(() => null));

/** A rank of a job, or of a part of one. */
async function worldOfJob(world: Communicator): Promise<SweepWorld> {
  const ranks = await ranksOfJob(world);
  const together = world.size > 1 && new Set(ranks.map(({ host }) => host)).size === 1;
  return {
    size: world.size,
    rank: world.rank,
    processes: world.size,
    ranks,
    time: (options) => native().timeCollective(nativeOf(world), options),
    estimate: noEstimates,
    ...throughHost(world),
    ...(together ? { timeBetweenCores: timerBetweenCores(world) } : {}),
    openMessages: (bytes) => Promise.resolve(hostMessages(world, bytes)),
    split: async (color) => worldOfJob(await partOf(world, color)),
    close: () => world.close(),
  };
}

/**
 * Opens the ranks: those of the job where there is one, else `size` of this process.
 *
 * @param size ranks of this process; a job has its own size
 * @param engine `local`: one communicator holds them all, as `Communicator.local(n)`; `threads`: each has one of its
 *   own, as worker threads have. Sending and receiving needs the latter.
 */
export async function openWorld(
  size: number,
  engine: Engine,
  timeoutMs?: number,
): Promise<SweepWorld> {
  if (jobSize() !== undefined) {
    return worldOfJob(await Communicator.world({ timeoutMs }));
  }
  const host = hostname();
  const local = Communicator.local(size);
  const members = engine === 'local' ? [local] : await local.openRanks();
  return {
    size,
    rank: 0,
    processes: 1,
    ranks: Array.from({ length: size }, (_, rank) => ({ rank, pid: process.pid, host })),
    time: (options) => timeOnAll(members.map(nativeOf), options),
    estimate: noEstimates,
    barrier: () => Promise.resolve(),
    gather: (values) => Promise.resolve([values]),
    close: () => local.close(),
  };
}
