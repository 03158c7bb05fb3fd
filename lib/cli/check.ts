// `gradlink check`: whether a machine is good, and which part is not.
import { Writable } from 'node:stream';

import { presentGpus } from './gpus.js';
import { namedHosts } from './launch/options.js';
import type { Io } from './io.js';
import { measured } from './measured-command.js';
import { addTable, givenOf, typedOf } from './parse.js';
import type { Register } from './register.js';
import { runAsJob } from './relaunch.js';
import { addReportOptions, ReportOutput, type ReportOptions } from './reports/report-output.js';
import { UsageError } from './usage-error.js';
import { checkTable, run, type RunAsJob } from '../check/index.js';
import { GradlinkError } from '../errors.js';
import { flatOptions } from '../measure/common-run.js';
import { jobSize } from '../measure/job.js';
import { checkTool } from '../report/index.js';
import { parseReport } from '../results/read-report.js';

const examples = `
Looks at one part of this machine after the other, and says in the first line whether it is good:

  doctor      the lines of gradlink doctor, without those of jobs and packages
  cores       the same arithmetic on each core: which is slow, and on which something else runs
  memory      a copy that no cache holds
  all-reduce  between threads and between processes: right to the bit, and as fast as memory and cores allow
  GPUs        copies each way and both ways, every pair, sums right to the bit, what their
              counters and clocks say before and after

A part is good, fair (told, and no failure) or bad. Where it has a limit, that is measured in the same run, or what the
links carry. A sum is not judged beside a bad part that it needs. Small sizes are judged by their result alone.

Examples:
  $ gradlink check
  $ gradlink check --format junit --output check.xml
  $ gradlink check --gpus 0,1,2,3 --quick
  $ gradlink check --parts cores,memory

Exit status: 0 all good or fair, 1 a part is bad, 2 wrong usage.`;

interface OwnOptions extends ReportOptions {
  readonly hostfile?: string;
}

/** A stream that keeps what is written to it. */
class Kept extends Writable {
  text = '';
  override _write(chunk: Buffer | string, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A job whose report is read rather than printed. */
function jobsOf(io: Io): RunAsJob {
  return async (ranks, args) => {
    const [stdout, stderr] = [new Kept(), new Kept()];
    const { env } = io;
    const quiet: Io = { env, stdout, stderr, on: io.on.bind(io), off: io.off.bind(io) };
    let received: NodeJS.Signals | undefined;
    const note = (signal: NodeJS.Signals): void => void (received = signal);
    for (const signal of signals) io.on(signal, note);
    const code = await runAsJob(ranks, [...args, '--format', 'json'], quiet).finally(() => {
      for (const signal of signals) io.off(signal, note);
    });
    // It ended the job, and was meant for all of the check.
    if (received !== undefined) process.kill(process.pid, received);
    if (stdout.text !== '') return parseReport(stdout.text, 'a report of processes of this host');
    throw new GradlinkError(
      'ERR_INTERNAL',
      `${String(ranks)} processes ended with status ${String(code)}: ${stderr.text.trim()}`,
    );
  };
}

export const registerCheck: Register = (program, io, done, argv) => {
  const command = program
    .command('check')
    .description('whether this machine or a cluster is good, and which part is not')
    .option(
      '-H, --hostfile <file>',
      'the hosts to look at, over ssh; or the hosts themselves: node1,node2',
    );
  addReportOptions(addTable(command, checkTable))
    .addHelpText('after', examples)
    .action(async (options: OwnOptions) => {
      const output = new ReportOutput(options, io);
      const asked = { commandLine: argv, options: flatOptions(typedOf(checkTable, options)) };
      const { hostfile } = options;
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
      const surroundings = { env: io.env, asJob: jobsOf(io) };
      done(
        await measured({ tool: checkTool, output, io, unit: 'parts' }, (events) =>
          run(given, surroundings, events),
        ),
      );
    });
};
