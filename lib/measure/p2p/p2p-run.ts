// The benchmark of copies between host memory and GPUs: `gradlink p2p` without its options and printing.
import { monotonicSeconds } from '../../time.js';
import { mebibyte } from '../../results/units.js';
import type { CaseResult, Report } from '../../results/result.js';
import { describeGpus } from '../machine/gpu-environment.js';
import { readMachine } from '../machine/gpus.js';
import {
  checkEvents,
  givenOptions,
  headOf,
  Steps,
  type Given,
  type RunEvents,
} from '../common-run.js';
import { joinHosts, measureBetween, type HostsWorld } from './between-hosts.js';
import { p2pCases } from './cases.js';
import { secondsLeft } from './estimate.js';
import { p2pRecords, p2pTable, type P2pOptions } from './p2p-options.js';
import { P2pTiming } from './timing.js';

/** Copies before the first sample of a figure. */
const warmup = 4;

/** Larger ones tell nothing more about a network. */
const mostMessageBytes = 16 * mebibyte;

async function runBetween(
  world: HostsWorld,
  given: Given<typeof p2pTable>,
  events: RunEvents,
): Promise<Report> {
  const tell = world.rank === 0 ? events : {};
  const bytes = Math.min(given.bytes, mostMessageBytes);
  const head = headOf('p2p', given, { hosts: world.hosts.length });
  tell.onStart?.(head, world.ranks);
  const steps = new Steps(tell, world.rounds);
  const { cases, hosts } = await measureBetween(world, bytes, given.samples, () => {
    steps.advance();
  });
  tell.onCases?.(cases);
  return { ...head, hosts, cases };
}

/**
 * Measures bandwidths and latencies. Cases that need more GPUs are waived. In a job on several hosts it measures
 * messages between them: collective, with the same figures for every process.
 *
 * @throws RangeError or TypeError with a code for invalid options
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver
 */
export async function run(options: P2pOptions = {}, events: RunEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = givenOptions(p2pTable, options);
  const world = await joinHosts(given.gpus, given.timeoutMs);
  if (world !== undefined) {
    try {
      return await runBetween(world, given, events);
    } finally {
      await world.close();
    }
  }
  const chosen =
    given.cases === undefined
      ? p2pCases
      : p2pRecords.filter(({ name }) => given.cases?.includes(name));
  const machine = readMachine(given.gpus);
  const timing = new P2pTiming(machine, { ...given, warmup });
  const head = headOf('p2p', given, {}, describeGpus(machine.gpus));
  events.onStart?.(head, []);
  const guessed = chosen.map((record) => timing.guessedSeconds(record));
  const begun = monotonicSeconds();
  const estimate = (done: number): void => {
    const left = secondsLeft(guessed, done, monotonicSeconds() - begun);
    events.onEstimate?.(left, done, chosen.length);
  };
  estimate(0);
  const steps = new Steps(
    events,
    chosen.reduce((sum, record) => sum + timing.steps(record), 0),
  );
  const cases: CaseResult[] = [];
  for (const [index, record] of chosen.entries()) {
    const results = await timing.run(record, () => {
      steps.advance();
    });
    cases.push(...results);
    events.onCases?.(results);
    estimate(index + 1);
  }
  return { ...head, cases };
}
