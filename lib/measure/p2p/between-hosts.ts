// Messages between the hosts of a job: a case per pair.
import { native } from '../../native/load.js';
import { beside, spreadOf, timesText, type Spread } from '../../results/beside.js';
import type { HostsComparison } from '../../results/hosts.js';
import type { CaseResult, FailedCase, MeasuredCase, Verdict } from '../../results/result.js';
import { describe } from '../../results/statistics.js';
import { countText } from '../../results/units.js';
import { readJob } from '../../communicator/joining/job.js';
import { openGpuWorld } from '../collectives/gpu-world.js';
import { openWorld } from '../collectives/world.js';
import {
  exchangeAll,
  hostsOf,
  judgeHosts,
  type HostRanks,
  type LinkSamples,
  type Ranks,
} from '../hosts/compare.js';
import { besideVerdict, messageCase, noneAlike } from '../hosts/message-case.js';
import { roundsOf } from '../hosts/rounds.js';

/** The name of its cases. */
export const betweenHosts = 'between_hosts';

/** The figure of a case: half of a round trip. */
export const thereAndBack = 'there and back';

/** The ranks of a job on several hosts. */
export interface HostsWorld extends Ranks {
  readonly hosts: readonly HostRanks[];
  readonly rounds: number;
  close(): Promise<void>;
}

function gpusHere(): number {
  try {
    return native().gpuCount();
  } catch {
    // Without a driver, messages use host memory.
    return 0;
  }
}

/**
 * Joins this process's job on several hosts; if every host has GPUs, the ranks are GPUs.
 *
 * @returns undefined without a job, and if all ranks are on one host
 */
export async function joinHosts(
  gpus: readonly number[] | undefined,
  timeoutMs: number,
): Promise<HostsWorld | undefined> {
  const job = readJob();
  if (job === undefined) return undefined;
  const world = await openWorld(1, 'local', timeoutMs);
  const hosts = hostsOf(world.ranks);
  const { openMessages } = world;
  if (hosts.length < 2 || openMessages === undefined) {
    await world.close();
    return undefined;
  }
  const found = { hosts, rounds: roundsOf(hosts.length).length };
  const present = await world.gather([gpusHere()]);
  if (present.some(([count = 0]) => count === 0)) return { ...world, openMessages, ...found };
  const own = gpus === undefined ? [] : [gpus[job.rank % gpus.length] ?? 0];
  const ofGpus = await openGpuWorld({ gpus: own, threads: false, timeoutMs });
  return {
    ...world,
    ...found,
    openMessages: ofGpus.openMessages ?? openMessages,
    close: async () => {
      await ofGpus.close();
      await world.close();
    },
  };
}

function verdictOf(
  link: LinkSamples,
  links: readonly LinkSamples[],
  { slowestHost }: HostsComparison,
): Verdict {
  const others = links.filter((other) => other !== link).map(spreadOfLink);
  const judged = beside(spreadOfLink(link), others);
  if (judged === undefined) return noneAlike('no other link to judge it by');
  const host = slowestHost?.standsOut === true ? ` (${slowestHost.host} stands out)` : '';
  return besideVerdict(
    judged,
    `${timesText(judged)} the time of the median of ${countText(others.length, 'other link')}`,
    `the way between these hosts, or one of them${host}`,
  );
}

const spreadOfLink = ({ seconds }: LinkSamples): Spread => spreadOf(describe(seconds));

function caseOf(
  link: LinkSamples,
  links: readonly LinkSamples[],
  hosts: readonly HostRanks[],
  bytes: number,
  comparison: HostsComparison,
): MeasuredCase | FailedCase {
  const { between, seconds, wrong } = link;
  const [from = '', to = ''] = between.map((at) => hosts[at]?.host);
  const { memory } = comparison;
  return messageCase(
    {
      name: betweenHosts,
      parameters: { figure: thereAndBack, quantity: 'bandwidth', from, to, bytes, memory },
    },
    {
      samplesSeconds: seconds.map((both) => both / 2),
      iterationsPerSample: 2,
      warmupIterations: 2,
      bytes,
      wrong,
      verdict: verdictOf(link, links, comparison),
    },
  );
}

/** Collective, with the same result on every rank. */
export async function measureBetween(
  world: HostsWorld,
  bytes: number,
  samples: number,
  advance: () => void,
): Promise<{ readonly cases: readonly CaseResult[]; readonly hosts: HostsComparison }> {
  const { memory, links } = await exchangeAll(world, world.hosts, bytes, samples, advance);
  const hosts = await judgeHosts(world, world.hosts, links, bytes, memory);
  return { hosts, cases: links.map((link) => caseOf(link, links, world.hosts, bytes, hosts)) };
}
