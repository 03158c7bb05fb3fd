// The check of one machine: `gradlink check` without its options and printing.
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

export interface Surroundings extends BurnInSurroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly asJob: RunAsJob;
  /** Expectations besides the hardware's limits and published figures. */
  readonly expected?: Expectations;
}

type Look = () => Promise<CaseResult[]>;

/** Runs a part; if it throws, the case fails under this name and the other parts still run. */
const part =
  (name: string, look: Look, parameters: CaseIdentity['parameters'] = {}): Look =>
  () =>
    look().catch((error: unknown) => [failedCase({ name, parameters }, error)]);

interface Group {
  readonly parts: readonly Look[];
  /** Why slow results of these parts are not judged; undefined if they are. */
  readonly excuse?: (
    before: readonly CaseResult[],
  ) => Promise<string | undefined> | string | undefined;
}

/**
 * Checks each part of this machine in turn, or several hosts. A poor or wrong part is an error in the report.
 *
 * @throws RangeError or TypeError with a code for invalid options
 * @throws GradlinkError for requested GPUs that do not exist
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
      // Report a fault once, and do not blame a part for other load on the machine.
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
