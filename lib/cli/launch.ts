// `gradlink launch`: starts a job's processes and passes their output and exit status on.
import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync } from 'node:fs';

import { InvalidArgumentError } from 'commander';

import { exitCodes } from './io.js';
import { choice, decimal, integer } from './parse.js';
import type { Register } from './register.js';
import { UsageError } from './usage-error.js';
import { allowedCores } from '../launch/cores.js';
import { launchers } from '../launch/launchers.js';
import { jobVariable, type ProcessPlan } from '../launch/job.js';
import { runJob, type JobResult } from '../launch/run-job.js';

/** core: each process gets its share of the cores. */
const bindings = ['core', 'none'] as const;

interface LaunchOptions {
  readonly numWorkers: number;
  readonly launcher: string;
  readonly env: Readonly<Record<string, string>>;
  readonly bindTo: (typeof bindings)[number];
  readonly timeout?: number;
  readonly grace: number;
  readonly tagOutput?: true;
  readonly outputDir?: string;
  readonly dryRun?: true;
}

const examples = `
The processes read their place from GRADLINK_RANK, GRADLINK_SIZE, GRADLINK_LOCAL_RANK and GRADLINK_LOCAL_SIZE;
Communicator.world() does that for you. Their standard input is empty.

Examples:
  $ gradlink launch -n 4 node app.js --epochs 3
  $ gradlink launch -n 2 --tag-output --env LOG_LEVEL=debug node app.js
  $ gradlink launch -n 4 gradlink collectives all_reduce -b 8 -e 64M -f 2

Exit status: 0 when every process ended with 0, else that of the first that failed (128 + signal number where a
signal killed it), 124 after --timeout, 130 after Ctrl-C. A process that fails ends the whole job.`;

/** Collects NAME=VALUE options. */
function environment(
  text: string,
  previous: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const match = /^([A-Za-z_]\w*)=(.*)$/s.exec(text);
  const [, name, value] = match ?? [];
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError('Expected NAME=VALUE, such as GRADLINK_NUM_THREADS=1.');
  }
  if (name === jobVariable || /^GRADLINK_(LOCAL_)?(RANK|SIZE)$/.test(name)) {
    throw new InvalidArgumentError(
      `Expected a variable that the launcher does not set itself, and it sets ${name}.`,
    );
  }
  return { ...previous, [name]: value };
}

function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The line a shell would take to start the process; the secret is not shown. */
function shellLine(plan: ProcessPlan): string {
  const variables = Object.entries(plan.env).map(
    ([name, value]) => `${name}=${name === jobVariable ? 'SECRET' : quote(value)}`,
  );
  const bound = plan.cores === undefined ? [] : ['taskset', '-c', plan.cores.join(',')];
  return [...variables, ...bound, ...plan.command.map(quote)].join(' ');
}

function prepareDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true });
    accessSync(directory, constants.W_OK);
  } catch (error) {
    throw UsageError.of(
      '--output-dir',
      'a directory to write to',
      `${directory} (${(error as Error).message})`,
    );
  }
}

function explain({ interruption, survivors }: JobResult): string {
  const lines: string[] = [];
  switch (interruption?.kind) {
    case 'failure': {
      const pid = interruption.pid === undefined ? '' : ` (process ${String(interruption.pid)})`;
      lines.push(
        `gradlink launch: rank ${interruption.label}${pid} ${interruption.what}; the job was ended.`,
      );
      if (interruption.lastLines.length > 0) {
        lines.push(`Its last lines:`, ...interruption.lastLines.map((line) => `  ${line}`));
      }
      break;
    }
    case 'timeout': {
      const seconds = String(interruption.timeoutMs / 1000);
      lines.push(`gradlink launch: the job was ended after ${seconds} s (--timeout).`);
      break;
    }
    case 'signal':
      lines.push(`gradlink launch: the job was ended by ${interruption.signal}.`);
      break;
    case undefined:
      break;
  }
  if (survivors.length > 0) {
    lines.push(`gradlink launch: these processes could not be ended: ${survivors.join(', ')}.`);
  }
  return lines.map((line) => `${line}\n`).join('');
}

export const registerLaunch: Register = (program, io, done) => {
  program
    .command('launch')
    .description('start a command as several processes that form one job')
    .requiredOption(
      '-n, --num-workers <count>',
      'processes to start, the ranks 0 to count - 1',
      integer({ min: 1, max: 4096 }),
    )
    .option(
      '--launcher <name>',
      'how they are started; local: on this host',
      choice(Object.keys(launchers)),
      'local',
    )
    .option(
      '--env <NAME=VALUE>',
      'set a variable in every process; may be repeated',
      environment,
      {},
    )
    .option(
      '--bind-to <what>',
      'core: each process runs on its share of the cores; none: wherever there is time',
      choice(bindings),
      'core',
    )
    .option('--timeout <seconds>', 'end the job after so long, with exit status 124', decimal(0))
    .option(
      '--grace <seconds>',
      'time between SIGTERM and SIGKILL when the job is ended',
      decimal(0),
      5,
    )
    .option('--tag-output', 'put [RANK] before every line')
    .option('--output-dir <dir>', 'also write rank-N.out and rank-N.err there')
    .option('--dry-run', 'print what would be started, one line a process, and start nothing')
    .argument('<command...>', 'the command and its arguments; it is started without a shell')
    .passThroughOptions()
    .addHelpText('after', examples)
    .action(async (command: [string, ...string[]], options: LaunchOptions) => {
      const launcher = launchers[options.launcher];
      if (launcher === undefined) throw new Error(`launcher ${options.launcher} is not registered`);
      const jobId = randomBytes(16).toString('hex');
      const plans = launcher.plan(
        {
          command,
          workers: options.numWorkers,
          env: options.env,
          cores: options.bindTo === 'core' ? allowedCores() : [],
        },
        jobId,
      );
      if (options.dryRun) {
        for (const plan of plans) io.stdout.write(`${shellLine(plan)}\n`);
        done(exitCodes.ok);
        return;
      }
      if (options.outputDir !== undefined) prepareDirectory(options.outputDir);
      const result = await runJob(plans, {
        jobId,
        env: io.env,
        signals: io,
        graceMs: options.grace * 1000,
        ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout * 1000 }),
        output: {
          stdout: io.stdout,
          stderr: io.stderr,
          tag: options.tagOutput === true,
          ...(options.outputDir === undefined ? {} : { directory: options.outputDir }),
        },
      });
      io.stderr.write(explain(result));
      done(result.exitCode);
    });
};
