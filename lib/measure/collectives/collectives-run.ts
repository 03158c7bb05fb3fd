// The benchmark of one collective over sizes, element types, operations and roots: `gradlink collectives` without its
// options and printing.
import { readJob } from '../../communicator/joining/job.js';
import { collectives } from '../../results/bandwidth.js';
import { failedCase } from '../../results/case.js';
import type { HostsComparison } from '../../results/hosts.js';
import type { CaseResult, EnvironmentInfo, Report } from '../../results/result.js';
import { integer, oneOf } from '../../checks.js';
import { argumentError, ruleError } from '../../errors.js';
import { compareHostsOf } from '../hosts/compare.js';
import { rankCount } from '../job.js';
import { CoresLimit } from '../machine/cores-limit.js';
import { describeGpus } from '../machine/gpu-environment.js';
import { gpuSweepLimit, type GpuSweepLimit } from '../machine/gpu-sweep-limit.js';
import { readMachine, type Machine } from '../machine/gpus.js';
import { measureSharedLimit } from '../machine/shared-limit.js';
import { sizedLimit } from '../machine/sized-limit.js';
import {
  checkEvents,
  givenOptions,
  headOf,
  Steps,
  type RankInfo,
  type RunEvents,
} from '../common-run.js';
import { openGpuWorld } from './gpu-world.js';
import { withChoices } from './nccl-choices.js';
import { collectivesTable, type CollectivesOptions } from './collectives-options.js';
import { groupsOf, unevenGroups, type Group } from './split.js';
import { runSweep, sweepRows, type HostSweepLimit, type Sweep } from './sweep.js';
import { openWorld, type SweepWorld } from './world.js';

const defaultRanks = 2;

/** The ranks to open. */
interface Place {
  readonly ranks: number;
  readonly open: (timeoutMs: number) => Promise<SweepWorld>;
  /** For GPU ranks: the visible GPUs that take part, and the one of each rank. */
  readonly gpus?: { readonly machine: Machine; readonly ordinals: readonly number[] };
}

function onHost({ collective, ranks, threads }: CollectivesOptions): Place {
  const size = rankCount(ranks, defaultRanks);
  const ofMessages = collective === 'sendrecv' || collective === 'hypercube';
  const engine = threads === true || ofMessages ? 'threads' : 'local';
  return { ranks: size, open: (timeoutMs) => openWorld(size, engine, timeoutMs) };
}

function onGpus(gpus: readonly number[], threads: boolean): Place {
  const job = readJob();
  const size = job?.size ?? gpus.length;
  const ordinals = Array.from({ length: size }, (_, rank) => gpus[rank % gpus.length] ?? 0);
  const own = job === undefined ? ordinals : ordinals.slice(job.rank, job.rank + 1);
  return {
    ranks: size,
    open: (timeoutMs) => openGpuWorld({ gpus: own, threads, timeoutMs }),
    gpus: { machine: readMachine([...new Set(ordinals)]), ordinals },
  };
}

/** The limit of the ranks: of their GPU links, or of a copy by all their cores. */
async function limitOf(
  world: SweepWorld,
  { gpus }: Place,
  { lastLevelCacheBytes }: EnvironmentInfo,
  given: Pick<Sweep, 'shared'>,
): Promise<HostSweepLimit | GpuSweepLimit> {
  if (gpus !== undefined) return gpuSweepLimit(gpus.machine, gpus.ordinals);
  const shared = await measureSharedLimit(world, lastLevelCacheBytes);
  const sized = sizedLimit(world, shared, lastLevelCacheBytes);
  const { timeBetweenCores: time, size } = world;
  if (time === undefined || given.shared) return { ...shared, sized };
  const cores = new CoresLimit(world, size, shared.availableCores, time);
  await cores.measure();
  return { ...shared, sized, cores };
}

/** Compares the hosts of a job by name, if its ranks can still communicate. A failure becomes a further case. */
async function hostsBeside(
  world: SweepWorld,
  cases: CaseResult[],
): Promise<HostsComparison | undefined> {
  const { openMessages } = world;
  if (openMessages === undefined || cases.some(({ status }) => status === 'error'))
    return undefined;
  try {
    return await compareHostsOf({ ...world, openMessages });
  } catch (error) {
    cases.push(failedCase({ name: 'hosts', parameters: {} }, error));
    return undefined;
  }
}

/** The groups of the ranks of a job; undefined without a split. */
function splitOf(split: string | undefined, size: number): readonly Group[] | undefined {
  if (split === undefined) return undefined;
  if (readJob() === undefined) {
    throw ruleError('ERR_INVALID_ARG_VALUE', 'split needs ranks that are processes of a job');
  }
  const groups = groupsOf(split, size);
  const uneven = unevenGroups(groups);
  if (uneven === undefined) return groups;
  const expected = `a rule that makes groups of one size of ${size} ranks`;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'split', expected, `${split}: ${uneven}`);
}

function withGroups(
  ranks: readonly RankInfo[],
  groups: readonly Group[] | undefined,
): readonly RankInfo[] {
  if (groups === undefined) return ranks;
  return ranks.map((one) => {
    const group = groups.find((its) => its.ranks.includes(one.rank));
    return group === undefined ? one : { ...one, group: group.color };
  });
}

/** A group as a world, whose calls start together with those of the other groups. */
async function groupWorld(whole: SweepWorld, { color }: Group): Promise<SweepWorld> {
  const { split } = whole;
  if (split === undefined) throw new RangeError('ranks of one process are not split');
  const part = await split(color);
  return {
    ...part,
    time: async (call) => {
      await whole.barrier();
      return part.time(call);
    },
  };
}

/** The cases of each other group's first rank, by group; collective. */
async function casesOfOthers(
  whole: SweepWorld,
  groups: readonly Group[],
  own: readonly CaseResult[],
): Promise<CaseResult[]> {
  const { texts, rank } = whole;
  const firsts = groups.map(({ ranks: [first = 0] }) => first);
  const text = firsts.includes(rank) ? JSON.stringify(own) : '';
  const lengths = await whole.gather([Buffer.byteLength(text)]);
  const longest = Math.max(...lengths.map(([length = 0]) => length));
  const all = (await texts?.(text, longest)) ?? [];
  const others = groups.filter(({ ranks }) => !ranks.includes(rank));
  return others.flatMap(({ ranks: [first = 0] }) => JSON.parse(all[first] ?? '[]') as CaseResult[]);
}

/**
 * Times a collective; collective in a job, with the same figures for every process. A failed case is part of the
 * report, and the sweep continues as long as the ranks can.
 *
 * @throws RangeError or TypeError with a code for invalid options
 * @throws GradlinkError ERR_TIMEOUT if ranks are missing, ERR_BACKEND_UNAVAILABLE for GPUs without a driver or NCCL
 */
export async function run(options: CollectivesOptions, events: RunEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = {
    ...givenOptions(collectivesTable, options),
    collective: oneOf(options.collective, 'collective', collectives),
  };
  if (given.likeNcclTests && given.gpus === undefined) {
    throw ruleError('ERR_INVALID_ARG_VALUE', 'likeNcclTests needs ranks that are GPUs');
  }
  if (given.likeNcclTests && (given.batch !== undefined || given.perIteration)) {
    const other = given.batch === undefined ? 'perIteration' : 'batch';
    throw ruleError('ERR_INVALID_ARG_VALUE', `likeNcclTests and ${other} cannot be combined`);
  }
  const place = given.gpus === undefined ? onHost(given) : onGpus(given.gpus, given.threads);
  integer(given.perIterationSkip, 'perIterationSkip', 0, given.iterations - 1);
  const groups = splitOf(given.split, place.ranks);
  for (const root of given.roots) {
    integer(root, 'roots', 0, (groups?.[0]?.ranks.length ?? place.ranks) - 1);
  }
  const whole = await place.open(given.timeoutMs);
  const opened: SweepWorld[] = [whole];
  try {
    const group = groups?.find(({ ranks }) => ranks.includes(whole.rank));
    const world = group === undefined ? whole : await groupWorld(whole, group);
    if (world !== whole) opened.unshift(world);
    const { collective, cycles, split, choices = new Map() } = given;
    const tell = whole.rank === 0 ? events : {};
    const head = headOf(
      'collectives',
      given,
      {
        collective,
        ranks: whole.size,
        hosts: new Set(whole.ranks.map(({ host }) => host)).size,
        ...(split === undefined ? {} : { split }),
      },
      place.gpus === undefined ? undefined : describeGpus(place.gpus.machine.gpus),
    );
    const { environment } = head;
    const limit = await limitOf(world, place, environment, given);
    await whole.barrier();
    tell.onStart?.(head, withGroups(whole.ranks, groups));
    const sweep: Sweep = group === undefined ? given : { ...given, group: group.color };
    const steps = new Steps(tell, cycles * sweepRows(sweep, world.size));
    const own: CaseResult[] = [];
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      const results = await runSweep(sweep, { world, limit, environment }, (row) => {
        tell.onCases?.([row.outOfPlace, row.inPlace]);
        steps.advance();
      });
      own.push(...withChoices(results, choices));
    }
    const others = groups === undefined ? [] : await casesOfOthers(whole, groups, own);
    for (let row = 0; row < others.length; row += 2) tell.onCases?.(others.slice(row, row + 2));
    const cases = [...own, ...others];
    const hosts = await hostsBeside(whole, cases);
    return { ...head, ...(hosts === undefined ? {} : { hosts }), cases };
  } finally {
    for (const one of opened) await one.close();
  }
}
