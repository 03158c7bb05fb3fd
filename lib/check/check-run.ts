// The check of one machine: all that `gradlink check` does but reading its options and printing.
import { availableParallelism } from 'node:os';

import {
  checkEvents,
  givenOptions,
  headOf,
  Steps,
  type RunEvents,
  type RunOptions,
} from '../measure/common-run.js';
import { jobSize } from '../measure/job.js';
import { describeGpus } from '../measure/machine/gpu-environment.js';
import type { Machine } from '../measure/machine/gpus.js';
import type { OptionsOf } from '../options/table.js';
import { failedCase } from '../results/case.js';
import type { CaseIdentity, CaseResult, Report } from '../results/result.js';
import { burnIn, type BurnInSurroundings } from './burn-in.js';
import { checkTable, type CheckGiven, type partNames } from './check-options.js';
import { runCluster } from './cluster/cluster-run.js';
import { ShellFleet } from './cluster/fleet.js';
import { checkCores, isBusy } from './cores.js';
import { judgeByExpected, unmatched, type Expectations } from './expect.js';
import { checkCopies, checkSums, copies, HealthPart, gpusOf } from './gpus.js';
import { checkDoctor, checkMemory } from './machine.js';
import { excused, hasPoor } from './part.js';
import { checkProcesses, checkThreads, rankCountFor, type RunAsJob } from './ranks.js';

/** What a check needs of the command that it is. */
export interface Surroundings extends BurnInSurroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly asJob: RunAsJob;
  /** Besides the hardware's limits, and figures that were published. */
  readonly expected?: Expectations;
}

type Look = () => Promise<CaseResult[]>;

/** Nothing that fails takes the parts after it along: what throws has a part of this name. */
const part =
  (name: string, look: Look, parameters: CaseIdentity['parameters'] = {}): Look =>
  () =>
    look().catch((error: unknown) => [failedCase({ name, parameters }, error)]);

interface Group {
  readonly parts: readonly Look[];
  /** Why what is slow among these is not judged; undefined where it is. */
  readonly excuse?: (
    before: readonly CaseResult[],
  ) => Promise<string | undefined> | string | undefined;
}

/**
 * Looks at each part of this machine, one after the other, or of several hosts: a part that is poor or wrong is an error
 * in the report.
 *
 * @throws RangeError or TypeError with a code for options that cannot be
 * @throws GradlinkError for GPUs that were asked for and are not there
 */
export async function run(
  options: OptionsOf<typeof checkTable> & RunOptions,
  surroundings: Surroundings,
  events: RunEvents = {},
): Promise<Report> {
  checkEvents(events);
  const given = givenOptions(checkTable, options);
  const { hosts, remoteShell, minutes = 0, hours = 0 } = given;
  const { env, stop } = surroundings;
  const fleet = hosts === undefined ? undefined : new ShellFleet(hosts, remoteShell, env, stop);
  const look = (telling: RunEvents): Promise<Report> =>
    fleet === undefined && jobSize() === undefined
      ? checkMachine(given, surroundings, telling)
      : runCluster(given, fleet, surroundings, telling);
  const seconds = minutes * 60 + hours * 3600;
  try {
    return await (seconds === 0 ? look(events) : burnIn(seconds, look, events, surroundings));
  } finally {
    await fleet?.end();
  }
}

async function checkMachine(
  given: CheckGiven,
  { env, asJob, expected = {}, stop }: Surroundings,
  events: RunEvents,
): Promise<Report> {
  const { parts, timeoutMs } = given;
  const machine = parts.includes('gpus') ? gpusOf(given.gpus) : undefined;
  const gpus = machine === undefined ? undefined : describeGpus(machine.gpus);
  const head = headOf('check', given, {}, gpus);
  events.onStart?.(head, []);
  const health = machine === undefined ? undefined : new HealthPart(machine);
  const ranks = rankCountFor(availableParallelism());
  const asked = (name: (typeof partNames)[number], ...of: readonly Look[]): readonly Look[] =>
    parts.includes(name) ? of : [];
  const ofGpus = (of: (one: Machine) => readonly Look[]): readonly Look[] =>
    machine === undefined ? [] : of(machine);
  const sums = (between: string, look: Look): Look => part('all_reduce', look, { between, ranks });
  const groups: readonly Group[] = [
    {
      parts: [
        ...asked(
          'doctor',
          part('doctor', () => checkDoctor(env)),
        ),
        ...asked('cores', part('cores', checkCores)),
        ...asked(
          'memory',
          part('memory', () => checkMemory(head.environment)),
        ),
      ],
    },
    {
      parts: asked(
        'ranks',
        sums('threads', () => checkThreads(ranks, timeoutMs)),
        sums('processes', () => checkProcesses(ranks, timeoutMs, asJob)),
      ),
      // The same fault is told once, and what others do on this machine is none of it.
      excuse: async (before) => {
        if (hasPoor(before)) return 'a part of the machine that it needs is bad';
        return (await isBusy()) ? 'the machine is busy' : undefined;
      },
    },
    { parts: ofGpus(() => copies.map((name) => part(name, () => checkCopies(name, given)))) },
    {
      parts: ofGpus((one) => [
        part('all_reduce', () => checkSums(one, given), { between: 'gpus' }),
      ]),
      excuse: (before) => (hasPoor(before) ? 'a copy between these GPUs is slow' : undefined),
    },
    { parts: ofGpus(() => [part('health', () => Promise.resolve(health?.parts() ?? []))]) },
  ];
  const steps = new Steps(
    events,
    groups.reduce((sum, group) => sum + group.parts.length, 0),
  );
  const cases: CaseResult[] = [];
  let before: readonly CaseResult[] = [];
  for (const { parts: those, excuse } of groups) {
    const measured: CaseResult[] = [];
    for (const look of those) {
      if (stop?.aborted === true) break;
      measured.push(...(await look()));
      steps.advance();
    }
    const all = judgeByExpected(measured, head, expected, cases);
    const why = hasPoor(all) ? await excuse?.(before) : undefined;
    const found = why === undefined ? all : all.map((one) => excused(one, why));
    if (found.length > 0) events.onCases?.(found);
    cases.push(...found);
    before = found;
  }
  return { ...head, cases: [...cases, ...unmatched(cases, expected)] };
}
