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

/** Two ranks: the one that takes the time first, which sends the windows. */
export type Pair = readonly [number, number];

/** How the messages of a pair are timed. */
export type Exchange = Omit<NativeMessageOptions, 'peer' | 'first'>;

/** What each rank of a world brings: as many seconds as there are samples, and bytes that came wrong. */
export interface RankSeconds {
  readonly seconds: readonly number[];
  readonly wrong: number;
  /** Of its host in that time; undefined where it does not tell. */
  readonly segments?: Segments;
  /** For a core, a second, by its threads together; undefined of a thread of this process, and where nobody tells. */
  readonly waitedShare?: number;
}

export interface PairWorld {
  readonly size: number;
  /** First rank of this process: 0 prints. */
  readonly rank: number;
  readonly backend: string;
  readonly ranks: readonly RankInfo[];
  /** Of each rank's host, the cores' worth of time that its ranks have together. */
  readonly cores: readonly number[];
  /**
   * All pairs at once, no rank in two; what every rank found, in their order. Of a pair the first rank has the seconds,
   * where both ways are busy the other one those of its own; the rest have zeros. All processes call it alike.
   *
   * @param bothWays each way on a communicator of its own, as two threads of a program would
   */
  time(
    pairs: readonly Pair[],
    exchange: Exchange,
    bothWays: boolean,
  ): Promise<readonly RankSeconds[]>;
  close(): Promise<void>;
}

/** One rank of this process. */
interface Member {
  readonly there: Communicator;
  /** Where messages the other way have a thread of their own. */
  readonly back: Communicator;
}

/** On `back` the second rank of a pair takes the time; undefined of a rank in no pair. */
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
  // Nobody begins while the round before still keeps a core busy.
  await there.barrier();
  const [before, waited, start] = [readSegments(), waitedSeconds(), monotonicSeconds()];
  const ways = [timeOne(there, pairs, exchange, false)];
  if (bothWays) ways.push(timeOne(back, pairs, exchange, true));
  // All are awaited, so that a failure leaves none behind.
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
          // Threads of one process wait for one another, too.
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
 * Opens the ranks: those of the job where there is one, else `size` threads of this process.
 *
 * @throws RangeError ERR_OUT_OF_RANGE for a backend between hosts without a job; else what `Communicator.world()` throws
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
