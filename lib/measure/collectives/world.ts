// The ranks of a sweep: of this process, or of this process's place in a job.
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
  /** First rank of this process; rank 0 prints. */
  readonly rank: number;
  /** Number of processes with these ranks. */
  readonly processes: number;
  readonly ranks: readonly RankInfo[];
  /** Runs one measurement on all ranks of this process. */
  time(options: NativeTimingOptions): Promise<NativeTiming>;
  /** NCCL's estimates for these calls; null if unknown. */
  estimate(
    calls: readonly NativeEstimated[],
    timeoutMs: number,
  ): Promise<readonly (number | null)[]>;
  barrier(): Promise<void>;
  /** The values of each process's first rank, in rank order; all give the same number. */
  gather(values: readonly number[]): Promise<readonly (readonly number[])[]>;
  /** Between processes of one host; otherwise absent. */
  readonly timeBetweenCores?: TimeBetweenCores;
  /** Between ranks of a job; absent within one process. */
  readonly openMessages?: (bytes: number) => Promise<Messages>;
  /** A text of each process, cut to this many bytes, in rank order; absent within one process. */
  readonly texts?: (text: string, mostBytes: number) => Promise<readonly string[]>;
  /** In a job, collective: the ranks of this one's color as a separate world, to be closed separately. */
  readonly split?: (color: number) => Promise<SweepWorld>;
  close(): Promise<void>;
}

/** Times on all communicators of this process in parallel; every rank gets the same result. */
export async function timeOnAll(
  members: readonly NativeCommunicator[],
  options: NativeTimingOptions,
): Promise<NativeTiming> {
  const all = await settled(members.map((one) => native().timeCollective(one, options)));
  const firstWrong = all.find((one) => one.firstWrong !== null)?.firstWrong ?? null;
  return { ...all[0]!, firstWrong };
}

/** Asks all communicators of this process in parallel; every rank gets the same estimates. */
export async function estimateOnAll(
  members: readonly NativeCommunicator[],
  calls: readonly NativeEstimated[],
  timeoutMs: number,
): Promise<readonly (number | null)[]> {
  const all = members.map((one) => native().estimateCollectives(one, calls, timeoutMs));
  return (await settled(all))[0]!;
}

/** Awaits all, so that a failure leaves none pending. */
async function settled<T>(all: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(all);
  return await Promise.all(all);
}

/** The ranks of a job, one process each. */
export async function ranksOfJob(world: Communicator): Promise<RankInfo[]> {
  const pids = await world.allGather(Int32Array.of(process.pid));
  const hosts = await hostsOfRanks(world);
  return [...pids].map((pid, rank) => ({ rank, pid, host: hosts[rank] ?? '' }));
}

/** The members of a job's worlds that use host memory. */
export function throughHost(
  control: Communicator,
): Pick<SweepWorld, 'barrier' | 'gather'> & Required<Pick<SweepWorld, 'texts'>> {
  return {
    barrier: () => control.barrier(),
    gather: (values) => gatherNumbers(control, values),
    texts: (text, mostBytes) => textsOfRanks(control, text, mostBytes),
  };
}

/** The communicator of one color. */
export async function partOf<M extends Memory>(
  world: Communicator<M>,
  color: number,
): Promise<Communicator<M>> {
  const part = await world.split(color);
  if (part === null) throw new RangeError('a rank is in the part of its color');
  return part;
}

/** For ranks in host memory. */
const noEstimates = (calls: readonly NativeEstimated[]): Promise<readonly null[]> =>
  Promise.resolve(calls.map(() => null));

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
 * Opens the ranks of the job, or without one `size` ranks of this process.
 *
 * @param size ranks of this process; a job has its own size
 * @param engine `local`: one communicator for all, like `Communicator.local(n)`; `threads`: one each, as for worker
 *   threads, which messages need
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
