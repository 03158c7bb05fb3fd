// The ranks that exchange messages in pairs: threads of this process, or this process's place in a job.
import { hostname } from 'node:os';

import { Communicator, nativeOf } from '../../communicator/communicator.js';
import { argumentError } from '../../errors.js';
import { native } from '../../native/load.js';
import type { NativeMessageOptions } from '../../native/measure.js';
import { ranksOfJob } from '../collectives/world.js';
import { monotonicSeconds } from '../../time.js';
import type { RankInfo } from '../common-run.js';
import { gatherNumbers, jobSize } from '../job.js';
import { coresOfHosts } from '../machine/shared-limit.js';
import type { PairsOptions } from './pairs-options.js';
import { readSegments, type Segments } from './segments.js';
import { waitedSeconds } from './waiting.js';

/** Two ranks; the first measures the time and sends the windows. */
export type Pair = readonly [number, number];

export type Exchange = Omit<NativeMessageOptions, 'peer' | 'first'>;

/** Each rank's results: seconds per sample, and wrong bytes. */
export interface RankSeconds {
  readonly seconds: readonly number[];
  readonly wrong: number;
  /** Of its host during that time; undefined if unknown. */
  readonly segments?: Segments;
  /** Seconds per second that its threads waited for a core; undefined for threads of this process, and if unknown. */
  readonly waitedShare?: number;
}

export interface PairWorld {
  readonly size: number;
  /** First rank of this process; rank 0 prints. */
  readonly rank: number;
  readonly backend: string;
  readonly ranks: readonly RankInfo[];
  /** The CPU time, in cores, of all ranks on each rank's host. */
  readonly cores: readonly number[];
  /**
   * Times disjoint pairs in parallel; returns every rank's results in rank order. The first rank of a pair has the
   * seconds, and with both directions busy also the second; others have zeros. Collective.
   *
   * @param bothWays each direction has its own communicator, as for two threads of a program
   */
  time(
    pairs: readonly Pair[],
    exchange: Exchange,
    bothWays: boolean,
  ): Promise<readonly RankSeconds[]>;
  close(): Promise<void>;
}

interface Member {
  readonly there: Communicator;
  /** For messages in the opposite direction on another thread. */
  readonly back: Communicator;
}

/** On `back` the second rank of a pair measures; undefined for ranks without a pair. */
async function timeOne(
  comm: Communicator,
  pairs: readonly Pair[],
  exchange: Exchange,
  back: boolean,
): Promise<RankSeconds | undefined> {
  const pair = pairs.find((one) => one.includes(comm.rank));
  if (pair === undefined) return undefined;
  const first = pair[0] === comm.rank;
  const { seconds, wrong } = await native().timeMessages(nativeOf(comm), {
    ...exchange,
    peer: pair[first ? 1 : 0],
    first: first !== back,
  });
  return { seconds: [...seconds], wrong };
}

async function timeMember(
  { there, back }: Member,
  pairs: readonly Pair[],
  exchange: Exchange,
  bothWays: boolean,
): Promise<readonly number[]> {
  // Nobody starts while the previous round keeps a core busy.
  await there.barrier();
  const [before, waited, start] = [readSegments(), waitedSeconds(), monotonicSeconds()];
  const ways = [timeOne(there, pairs, exchange, false)];
  if (bothWays) ways.push(timeOne(back, pairs, exchange, true));
  // Awaits all, so that a failure leaves none pending.
  const settled = await Promise.allSettled(ways);
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  const found = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const seconds = found.find((one) => (one?.seconds.length ?? 0) > 0)?.seconds;
  const wrong = found.reduce((sum, one) => sum + (one?.wrong ?? 0), 0);
  const waitedShare = (waitedSeconds() - waited) / (monotonicSeconds() - start);
  const after = readSegments();
  return [
    ...(seconds ?? new Array<number>(exchange.samples).fill(0)),
    wrong,
    waitedShare,
    ...(['sent', 'again'] as const).map(
      (count) => (after?.[count] ?? NaN) - (before?.[count] ?? NaN),
    ),
  ];
}

function opened(
  members: readonly Member[],
  [first, ...others]: readonly RankInfo[],
  cores: readonly number[],
  gather: (own: readonly (readonly number[])[]) => Promise<readonly (readonly number[])[]>,
  close: () => Promise<void>,
): PairWorld {
  const [{ there } = { there: undefined }] = members;
  if (there === undefined || first === undefined) throw new RangeError('a world has a rank');
  return {
    size: there.size,
    rank: there.rank,
    backend: there.backend,
    ranks: [first, ...others],
    cores,
    async time(pairs, exchange, bothWays) {
      const settled = await Promise.allSettled(
        members.map((member) => timeMember(member, pairs, exchange, bothWays)),
      );
      const failed = settled.find((one) => one.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      const own = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      return (await gather(own)).map((values) => {
        const [wrong = 0, waitedShare = NaN, sent = NaN, again = NaN] = values.slice(
          exchange.samples,
        );
        const told = Number.isFinite(sent);
        return {
          seconds: values.slice(0, exchange.samples),
          wrong,
          ...(told ? { segments: { sent, again } } : {}),
          // Threads of one process also wait for one another.
          ...(Number.isFinite(waitedShare) && members.length === 1 ? { waitedShare } : {}),
        };
      });
    },
    close: async () => {
      await Promise.all(members.map(({ back }) => back.close()));
      await close();
    },
  };
}

async function withBack(there: Communicator): Promise<Member> {
  const back = await there.split(0);
  if (back === null) throw new RangeError('a part of all ranks has this one');
  return { there, back };
}

/**
 * Opens the ranks of the job, or without one `size` threads of this process.
 *
 * @throws RangeError ERR_OUT_OF_RANGE for a backend between hosts without a job; else as `Communicator.world()`
 */
export async function openPairs(
  size: number,
  { backend, timeoutMs }: Pick<PairsOptions, 'backend' | 'timeoutMs'>,
): Promise<PairWorld> {
  if (jobSize() !== undefined) {
    const world = await Communicator.world({ backend, timeoutMs });
    const ranks = await ranksOfJob(world);
    const cores = await coresOfHosts({ gather: (values) => gatherNumbers(world, values) });
    const members = [await withBack(world)];
    return opened(
      members,
      ranks,
      cores,
      ([own = []]) => gatherNumbers(world, own),
      () => world.close(),
    );
  }
  if (backend !== undefined && backend !== 'shm') {
    const expected = 'shm, or a job: gradlink launch -n 2 gradlink pairs';
    throw argumentError('ERR_OUT_OF_RANGE', 'backend', expected, backend);
  }
  const local = Communicator.local(size);
  const members = await Promise.all((await local.openRanks()).map(withBack));
  const host = hostname();
  const ranks = members.map(({ there: { rank } }) => ({ rank, pid: process.pid, host }));
  const [cores = 0] = await coresOfHosts({ gather: (values) => Promise.resolve([values]) });
  return opened(
    members,
    ranks,
    ranks.map(() => cores),
    (own) => Promise.resolve(own),
    () => local.close(),
  );
}
