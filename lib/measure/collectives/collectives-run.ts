// The benchmark of one collective over sizes, element types, operations and roots: all that `gradlink collectives` does
// but reading its options and printing.
import { readJob } from '../../communicator/joining/job.js';
import { collectives } from '../../results/bandwidth.js';
import { failedCase } from '../../results/case.js';
import type { HostsComparison } from '../../results/hosts.js';
import type { CaseResult, EnvironmentInfo, Report } from '../../results/result.js';
import { integer, oneOf } from '../../checks.js';
import { ruleError } from '../../errors.js';
import { compareHostsOf } from '../hosts/compare.js';
import { rankCount } from '../job.js';
import { CoresLimit } from '../machine/cores-limit.js';
import { describeGpus } from '../machine/gpu-environment.js';
import { gpuSweepLimit, type GpuSweepLimit } from '../machine/gpu-sweep-limit.js';
import { readMachine, type Machine } from '../machine/gpus.js';
import { measureSharedLimit } from '../machine/shared-limit.js';
import { sizedLimit } from '../machine/sized-limit.js';
import { checkEvents, givenOptions, headOf, Steps, type RunEvents } from '../common-run.js';
import { openGpuWorld } from './gpu-world.js';
import { withChoices } from './nccl-choices.js';
import { collectivesTable, type CollectivesOptions } from './collectives-options.js';
import { runSweep, sweepRows, type HostSweepLimit, type Sweep } from './sweep.js';
import { openWorld, type SweepWorld } from './world.js';

const defaultRanks = 2;

/** Ranks that are to be opened. */
interface Place {
  readonly ranks: number;
  readonly open: (timeoutMs: number) => Promise<SweepWorld>;
  /** Where ranks are GPUs: those that take part, as far as this process sees them, and which each rank is. */
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

/** What ranks can reach: by the links of their GPUs, or by what all their cores copy together. */
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

/** The hosts of a job by name, where the sweep has left its ranks able to talk. A failure is one more case. */
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

/**
 * Times a collective; every process of a job calls it alike and gets the same figures. A case that fails is part of the
 * report, and the sweep goes on while the ranks can.
 *
 * @throws RangeError or TypeError with a code for options that cannot be
 * @throws GradlinkError ERR_TIMEOUT when ranks do not come, ERR_BACKEND_UNAVAILABLE for GPUs without a driver or NCCL
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
  for (const root of given.roots) integer(root, 'roots', 0, place.ranks - 1);
  integer(given.perIterationSkip, 'perIterationSkip', 0, given.iterations - 1);
  const world = await place.open(given.timeoutMs);
  try {
    const { collective, cycles, choices = new Map() } = given;
    const tell = world.rank === 0 ? events : {};
    const head = headOf(
      'collectives',
      given,
      {
        collective,
        ranks: world.size,
        hosts: new Set(world.ranks.map(({ host }) => host)).size,
      },
      place.gpus === undefined ? undefined : describeGpus(place.gpus.machine.gpus),
    );
    const { environment } = head;
    const limit = await limitOf(world, place, environment, given);
    await world.barrier();
    tell.onStart?.(head, world.ranks);
    const steps = new Steps(tell, cycles * sweepRows(given, world.size));
    const cases: CaseResult[] = [];
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      const results = await runSweep(given, { world, limit, environment }, (row) => {
        tell.onCases?.([row.outOfPlace, row.inPlace]);
        steps.advance();
      });
      cases.push(...withChoices(results, choices));
    }
    const hosts = await hostsBeside(world, cases);
    return { ...head, ...(hosts === undefined ? {} : { hosts }), cases };
  } finally {
    await world.close();
  }
}
