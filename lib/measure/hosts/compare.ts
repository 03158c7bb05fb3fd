// Compares the hosts of a job: each copies in its own memory, and pairs of hosts exchange messages.
import { compareHosts, type HostsComparison, type LinkSeconds } from '../../results/hosts.js';
import { spreadOf } from '../../results/beside.js';
import { describe } from '../../results/statistics.js';
import { mebibyte } from '../../results/units.js';
import type { RankInfo } from '../common-run.js';
import type { Messages } from './messages.js';
import { partnerIn, roundsOf } from './rounds.js';

/** The ranks of a job on several hosts. */
export interface Ranks {
  /** Of this process. */
  readonly rank: number;
  readonly ranks: readonly RankInfo[];
  barrier(): Promise<void>;
  /** The values of each rank, in order; all give the same number. */
  gather(values: readonly number[]): Promise<readonly (readonly number[])[]>;
  openMessages(bytes: number): Promise<Messages>;
}

export interface HostRanks {
  readonly host: string;
  readonly ranks: readonly number[];
}

/** All samples of one link; the same on every rank. */
export interface LinkSamples {
  readonly between: readonly [number, number];
  /** Round trips. */
  readonly seconds: readonly number[];
  /** Wrong elements. */
  readonly wrong: number;
}

/** Hosts, ordered by their first ranks. */
export function hostsOf(ranks: readonly RankInfo[]): HostRanks[] {
  const hosts = new Map<string, number[]>();
  for (const { host, rank } of ranks) hosts.set(host, [...(hosts.get(host) ?? []), rank]);
  return [...hosts].map(([host, its]) => ({ host, ranks: its }));
}

const copyBytes = 4 * mebibyte;
/** Long enough that each copy gets undisturbed moments; a few milliseconds depend on the scheduling. */
const copySeconds = 0.1;
const times = 7;
const second = 1e-3;

async function timed(
  repetitions: number,
  action: () => Promise<void> | void,
  leastSeconds = 0,
): Promise<number[]> {
  // The first run has cold caches and may wait for its partner.
  await action();
  const seconds: number[] = [];
  const end = performance.now() + leastSeconds / second;
  while (seconds.length < repetitions || performance.now() < end) {
    const start = performance.now();
    await action();
    seconds.push((performance.now() - start) * second);
  }
  return seconds;
}

/** All ranks copy in their own memory in parallel, as under load. */
async function ownCopies(world: Ranks): Promise<readonly (readonly number[])[]> {
  const [from, to] = [new Uint8Array(copyBytes).fill(1), new Uint8Array(copyBytes)];
  await world.barrier();
  const { medianSeconds, minSeconds } = describe(
    await timed(
      times,
      () => {
        to.set(from);
      },
      copySeconds,
    ),
  );
  return world.gather([medianSeconds, minSeconds]);
}

/**
 * Exchanges messages between all pairs of hosts, by each host's first rank, as many disjoint pairs in parallel as
 * possible. Collective, with the same result on every rank.
 *
 * @param advance called after each of {@link roundsOf} rounds
 */
export async function exchangeAll(
  world: Ranks,
  hosts: readonly HostRanks[],
  bytes: number,
  samples: number,
  advance: () => void = () => undefined,
): Promise<{ readonly memory: HostsComparison['memory']; readonly links: LinkSamples[] }> {
  const leaders = hosts.map(({ ranks: [first = 0] }) => first);
  const own = leaders.indexOf(world.rank);
  const messages = await world.openMessages(bytes);
  const rounds = roundsOf(hosts.length);
  const mine: number[] = [];
  try {
    for (const round of rounds) {
      const partner = own < 0 ? undefined : partnerIn(round, own, hosts.length);
      const peer = partner === undefined ? undefined : leaders[partner];
      if (partner === undefined || peer === undefined) {
        mine.push(...new Array<number>(samples + 1).fill(0));
      } else {
        const seconds = await timed(samples, async () => {
          if (own < partner) await messages.send(peer);
          await messages.receive(peer);
          if (own > partner) await messages.send(peer);
        });
        mine.push(...seconds, await messages.countWrong(peer));
      }
      await world.barrier();
      advance();
    }
  } finally {
    messages.free();
  }
  const all = await world.gather(mine);
  const links = leaders.flatMap((leader, host) =>
    rounds.flatMap((round, at): LinkSamples[] => {
      const partner = partnerIn(round, host, hosts.length);
      if (partner === undefined || partner < host) return [];
      const of = (rank = 0): readonly number[] =>
        (all[rank] ?? []).slice(at * (samples + 1), (at + 1) * (samples + 1));
      const [first, other] = [of(leader), of(leaders[partner])];
      return [
        {
          between: [host, partner],
          seconds: first.slice(0, samples),
          wrong: (first[samples] ?? 0) + (other[samples] ?? 0),
        },
      ];
    }),
  );
  return { memory: messages.memory, links };
}

/** The hosts by name, judged by their links. */
export async function judgeHosts(
  world: Ranks,
  hosts: readonly HostRanks[],
  links: readonly LinkSamples[],
  bytes: number,
  memory: HostsComparison['memory'],
): Promise<HostsComparison> {
  const copies = await ownCopies(world);
  const seen = hosts.map(({ host, ranks }) => {
    const own = ranks.map((rank) => copies[rank] ?? []);
    const most = (column: number): number => Math.max(...own.map((one) => one[column] ?? 0));
    return { host, ranks, own: { medianSeconds: most(0), fastestSeconds: most(1) } };
  });
  const ways = links.map(({ between, seconds }): LinkSeconds => ({
    between,
    ...spreadOf(describe(seconds)),
  }));
  return compareHosts(seen, ways, bytes, memory);
}

/** Compares a sweep's hosts; undefined for a single host. Collective, with the same result on every rank. */
export async function compareHostsOf(world: Ranks): Promise<HostsComparison | undefined> {
  const hosts = hostsOf(world.ranks);
  if (hosts.length < 2) return undefined;
  const { memory, links } = await exchangeAll(world, hosts, mebibyte, times);
  return judgeHosts(world, hosts, links, mebibyte, memory);
}
