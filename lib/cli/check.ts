// `gradlink check`: whether a machine is good, and which part is not.
import { hostname } from 'node:os';
import { Writable } from 'node:stream';

import { presentGpus } from './gpus.js';
import { namedHosts } from './launch/options.js';
import { endingSignals, type Io } from './io.js';
import { measured, type Print } from './measured-command.js';
import { durationText } from './progress/estimate.js';
import { addTable, givenOf, typedOf } from './parse.js';
import type { Register } from './register.js';
import { runAsJob } from './relaunch.js';
import { readable, readRuns } from './reports/read-runs.js';
import {
  addReportOptions,
  checkOutput,
  ReportOutput,
  type ReportOptions,
} from './reports/report-output.js';
import { UsageError } from './usage-error.js';
import {
  checkTable,
  readExpected,
  run,
  type BurnInSurroundings,
  type RunAsJob,
} from '../check/index.js';
import { Baselines, type NamedRuns } from '../compare/index.js';
import { GradlinkError } from '../errors.js';
import { writeFileAtomic } from '../files/index.js';
import { slurmNode } from '../launch/own-host.js';
import { flatOptions } from '../measure/common-run.js';
import { jobSize } from '../measure/job.js';
import { text } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import { badHosts, checkAnswer, checkToolSince } from '../report/check-lines.js';
import { parseReport, readReport } from '../results/read-report.js';
import type { Report } from '../results/result.js';
import { monotonicSeconds } from '../time.js';

const examples = `
Looks at one part of this machine after the other (--parts), and says in the first line whether it is good:

  doctor      the lines of gradlink doctor, without those of jobs and packages
  cores       the same arithmetic on each core: which is slow, and on which something else runs
  memory      a copy that no cache holds
  ranks       sums between threads and between processes: right to the bit, and as fast as memory and cores allow
  gpus        copies each way and both ways, every pair, sums right to the bit, what their
              counters and clocks say before and after

With -H, and as the command of mpirun, srun, torchrun or gradlink launch, it looks at several hosts: each by itself, all at
once; then pairs of them in rounds; then all together. A host that does not answer is named, and the others go on.

A part is good, fair (told, and no failure) or bad. Where it has a limit, that is measured in the same run, or what the
links carry. A sum is not judged beside a bad part that it needs. Small sizes are judged by their result alone.

With --minutes or --hours it goes on, round after round. Ctrl-C or SIGTERM ends that: what was measured is reported.

Examples:
  $ gradlink check
  $ gradlink check --format junit --output check.xml
  $ gradlink check --gpus 0,1,2,3 --quick
  $ gradlink check --parts cores,memory
  $ gradlink check --expect expected.yaml --baseline good-day
  $ gradlink check --hours 8 --output burn-in.json
  $ gradlink check -H hosts --bad-hosts bad.txt
  $ srun --ntasks-per-node=1 gradlink check

Exit status: 0 all good or fair, 1 a part is bad, 2 wrong usage.`;

const ownTable = optionTable({
  hostfile: {
    flag: '-H, --hostfile <file>',
    help: 'the hosts to look at, over ssh; or the hosts themselves: node1,node2',
    kind: text(),
  },
  badHosts: {
    flag: '--bad-hosts <file>',
    help: 'write the names of bad hosts to this file, one a line',
    kind: text(),
  },
  previous: {
    flag: '--previous <file>',
    help: 'an earlier report (JSON): say what has changed since',
    kind: text(),
  },
  expect: {
    flag: '--expect <file>',
    help: 'figures that are expected, as YAML: docs/check.md',
    kind: text(),
  },
  baseline: {
    flag: '--baseline <name>',
    help: 'runs of a good day: a baseline, a report or a folder of them',
    kind: text(),
  },
});

type OwnOptions = ReadOf<typeof ownTable> & ReportOptions;

/** @throws UsageError for what is no report of a check */
function previousCheck(file: string): Report {
  const report = readable(file, () => readReport(file));
  const { tool } = report.run;
  if (tool === 'check') return report;
  throw UsageError.of('--previous', 'a report of gradlink check', `${file}, of gradlink ${tool}`);
}

/** A stream that keeps what is written to it. */
class Kept extends Writable {
  text = '';
  override _write(chunk: Buffer | string, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** Of a burn-in: a signal says that it is enough, and the next one ends the process as ever. */
function stoppedBy(io: Io): AbortSignal {
  const stop = new AbortController();
  const enough = (): void => {
    for (const signal of endingSignals) io.off(signal, enough);
    stop.abort();
  };
  for (const signal of endingSignals) io.on(signal, enough);
  return stop.signal;
}

/** Seconds between lines of rounds that are as good, or as bad, as the one before. */
const quietSeconds = 60;

/** `round 12: so far good: 21 of 21; 40 min left`. */
function roundLines(print: Print): NonNullable<BurnInSurroundings['onRound']> {
  const last = { good: undefined as boolean | undefined, at: 0 };
  return (round, secondsLeft, cases) => {
    const answer = checkAnswer(cases);
    const [good, at] = [answer.startsWith('good'), monotonicSeconds()];
    if (good === last.good && at - last.at < quietSeconds) return;
    Object.assign(last, { good, at });
    print([`round ${String(round)}: so far ${answer}; ${durationText(secondsLeft)} left`]);
  };
}

/** A job whose report is read rather than printed. */
function jobsOf(io: Io, stop: AbortSignal | undefined): RunAsJob {
  return async (ranks, args) => {
    const [stdout, stderr] = [new Kept(), new Kept()];
    const { env } = io;
    const quiet: Io = { env, stdout, stderr, on: io.on.bind(io), off: io.off.bind(io) };
    let received: NodeJS.Signals | undefined;
    const note = (signal: NodeJS.Signals): void => void (received = signal);
    for (const signal of endingSignals) io.on(signal, note);
    const code = await runAsJob(ranks, [...args, '--format', 'json'], quiet).finally(() => {
      for (const signal of endingSignals) io.off(signal, note);
    });
    // It ended the job, and was meant for all of the check.
    if (received !== undefined && stop?.aborted !== true) process.kill(process.pid, received);
    if (stdout.text !== '') return parseReport(stdout.text, 'a report of processes of this host');
    throw new GradlinkError(
      'ERR_INTERNAL',
      `${String(ranks)} processes ended with status ${String(code)}: ${stderr.text.trim()}`,
    );
  };
}

function goodDay(name: string, io: Io): NamedRuns {
  const runs = readRuns(name, new Baselines(io.env), '--baseline');
  const other = runs.reports.find(({ run: { tool } }) => tool !== 'check');
  if (other === undefined) return runs;
  throw UsageError.of('--baseline', 'runs of gradlink check', `one of ${other.run.tool}`);
}

export const registerCheck: Register = (program, io, done, argv) => {
  const command = program
    .command('check')
    .description('whether this machine or a cluster is good, and which part is not');
  addReportOptions(addTable(addTable(command, checkTable), ownTable))
    .addHelpText('after', examples)
    .action(async (options: OwnOptions) => {
      const output = new ReportOutput(options, io);
      const { badHosts: badFile } = options;
      if (badFile !== undefined) checkOutput(badFile, '--bad-hosts');
      const tool = checkToolSince(
        options.previous === undefined ? undefined : previousCheck(options.previous),
      );
      const after = (report: Report): Promise<void> => {
        const lines = badHosts(report, slurmNode(io.env) ?? hostname()).map((host) => `${host}\n`);
        if (badFile !== undefined) writeFileAtomic(badFile, lines);
        return Promise.resolve();
      };
      const asked = { commandLine: argv, options: flatOptions(typedOf(checkTable, options)) };
      const { hostfile, expect, baseline } = options;
      const hosts =
        hostfile === undefined
          ? undefined
          : [...new Set(namedHosts(hostfile, true).map(({ name }) => name))];
      const given = { ...givenOf(checkTable, options), asked, hosts };
      if (hosts !== undefined && jobSize() !== undefined) {
        throw new UsageError('In a job gradlink check looks at its hosts: omit -H.');
      }
      if (given.remoteShell !== undefined && hosts === undefined) {
        throw new UsageError('--remote-shell needs -H.');
      }
      if (given.gpus !== undefined && hosts === undefined) presentGpus(given.gpus);
      const expected = {
        figures: expect === undefined ? [] : readable(expect, () => readExpected(expect)),
        baseline: baseline === undefined ? undefined : goodDay(baseline, io),
      };
      const isBurnIn = given.minutes !== undefined || given.hours !== undefined;
      if (isBurnIn && jobSize() !== undefined) {
        throw new UsageError('--minutes and --hours are for one machine, or for hosts with -H.');
      }
      const stop = isBurnIn ? stoppedBy(io) : undefined;
      const surroundings = { env: io.env, asJob: jobsOf(io, stop), stop, expected };
      const shown = isBurnIn ? { unit: undefined, lines: io.stderr } : { unit: 'parts' };
      done(
        await measured({ tool, output, io, after, ...shown }, (events, print) => {
          const onStart: typeof events.onStart = (...head) => {
            // A check that fails itself leaves no names of another day for a scheduler.
            if (badFile !== undefined) writeFileAtomic(badFile, []);
            events.onStart(...head);
          };
          return run(
            given,
            { ...surroundings, onRound: roundLines(print) },
            { ...events, onStart },
          );
        }),
      );
    });
};
