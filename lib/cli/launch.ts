// `gradlink launch`: starts a job's processes and passes their output and exit status on.
import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync } from 'node:fs';

import { InvalidArgumentError } from 'commander';

import { exitCodes } from './io.js';
import { choice, decimal, integer } from './parse.js';
import type { Register } from './register.js';
import { UsageError } from './usage-error.js';
import { explain, shellLine } from './launch-report.js';
import { allowedCores } from '../launch/cores.js';
import { launchers } from '../launch/launchers.js';
import { jobVariable, launcherVariables } from '../launch/job.js';
import { runJob } from '../launch/run-job.js';

/** core: each process gets its share of the cores. */
const bindings = ['core', 'none'] as const;

interface LaunchOptions {
  readonly numWorkers: number;
  readonly numServers: number;
  readonly launcher: string;
  readonly env: Readonly<Record<string, string>>;
  readonly bindTo: (typeof bindings)[number];
  readonly timeout?: number;
  readonly grace: number;
  readonly tagOutput?: true;
  readonly outputDir?: string;
  readonly dryRun?: true;
  readonly tolerateWorkerLoss?: true;
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
  if (launcherVariables.includes(name)) {
    throw new InvalidArgumentError(
      `Expected a variable that the launcher does not set itself, and it sets ${name}.`,
    );
  }
  return { ...previous, [name]: value };
}

/** A launcher may itself be a process of a job: what that one was told is not for the processes of this one. */
function withoutOuterJob(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !launcherVariables.includes(name)),
  );
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
      '-s, --num-servers <count>',
      'processes that keep the distributed store (dist_sync, dist_async); they run gradlink serve',
      integer({ min: 0, max: 4096 }),
      0,
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
    .option('--tolerate-worker-loss', 'go on without workers that fail, as long as one is left')
    .option('--tag-output', 'put [RANK] before every line, [sN] before those of server N')
    .option(
      '--output-dir <dir>',
      'also write rank-N.out and rank-N.err there, server-N.out and server-N.err',
    )
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
          servers: options.numServers,
          tolerateWorkerLoss: options.tolerateWorkerLoss === true,
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
        mark: `${jobVariable}=${jobId}`,
        workers: options.numWorkers,
        tolerateWorkerLoss: options.tolerateWorkerLoss === true,
        env: withoutOuterJob(io.env),
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
