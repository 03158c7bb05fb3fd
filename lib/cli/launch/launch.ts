// `gradlink launch`: starts a job's processes and passes their output and exit status on.
import { randomBytes } from 'node:crypto';

import { exitCodes, type Io } from '../io.js';
import { ownCommand } from '../own-command.js';
import { addTable } from '../parse.js';
import { ProgressRelay } from '../progress/relay.js';
import { withColumns } from '../terminal/terminal-width.js';
import type { Register } from '../register.js';
import { plainReason } from '../surroundings.js';
import { UsageError } from '../usage-error.js';
import { launchTable, type LaunchOptions, type TypedOptions } from './launch-table.js';
import { prepareDirectory, readLaunch, toMs } from './options.js';
import { settled } from './guesses.js';
import { explain, gpuNotes, hiddenVariables, shellLine } from './report.js';
import { Control } from '../../launch/control.js';
import {
  jobVariable,
  variablesOf,
  type Command,
  type JobSpec,
  type Launcher,
  type ProcessPlan,
} from '../../launch/job.js';
import { defaultMaxRestarts, runElastic, type Attempt } from '../../launch/elastic.js';
import { staysOnOwnHost } from '../../launch/own-host.js';
import { runJob, type JobResult } from '../../launch/run-job.js';
import { syncCommands, syncDirectory } from '../../launch/sync.js';
import { readNetwork } from '../../network.js';

const examples = `
Workers read their place from GRADLINK_RANK, GRADLINK_SIZE, GRADLINK_LOCAL_RANK and GRADLINK_LOCAL_SIZE, or from what
mpirun and srun tell them; Communicator.world() does that for you. torchrun's names (RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT) are set too. Standard input of all processes is empty.

A hostfile has a host a line: node1, node1:4 or node1 slots=4.

Examples:
  $ gradlink launch -n 4 node app.js --epochs 3
  $ gradlink launch -n 4 -s 2 gradlink measure --kv-store dist_sync
  $ gradlink launch -n 8 -s 2 -H hosts --sync-dst-dir ~/app node app.js
  $ gradlink launch -n 64 --launcher slurm --launcher-arg=--partition=gpu node app.js
  $ gradlink launch -n 4 --elastic gradlink train --checkpoint-dir checkpoints --checkpoint-every 100
  $ gradlink launch -n 2 --tag-output --env LOG_LEVEL=debug node app.js

Exit status: 0 when every process ended with 0, else that of the first that failed (128 + signal number where a
signal killed it), 124 after --timeout, 130 after Ctrl-C. A process that fails ends the whole job.`;

/** The processes to start; what is wrong with this machine's mpirun or srun is the user's to mend. */
function planned(launcher: Launcher, job: JobSpec, jobId: string): readonly ProcessPlan[] {
  try {
    return launcher.plan(job, jobId);
  } catch (error) {
    throw new UsageError(`--launcher ${launcher.name}: ${(error as Error).message}.`);
  }
}

function printPlan(launcher: Launcher, job: JobSpec, io: Io): void {
  const hidden = hiddenVariables(job);
  if (job.directory !== undefined) {
    for (const host of new Set(job.hosts)) {
      for (const command of syncCommands(host, job.remoteShell ?? 'ssh', job.directory)) {
        io.stdout.write(`${shellLine({ index: 0, label: 'sync', command, env: {} }, hidden)}\n`);
      }
    }
  }
  const whole = launcher.remote === true ? { ...job, control: 'ADDRESSES:PORT' } : job;
  for (const plan of planned(launcher, whole, 'SECRET')) {
    io.stdout.write(`${shellLine(plan, hidden)}\n`);
  }
}

async function launch(command: Command, typed: TypedOptions, io: Io): Promise<number> {
  const note = (text: string): void => {
    io.stderr.write(`gradlink launch: ${text}.\n`);
  };
  const options = settled(typed, io.env, note);
  const { launcher, job } = readLaunch(ownCommand(command), options, io.env, note);
  if (options.dryRun) {
    printPlan(launcher, job, io);
    return exitCodes.ok;
  }
  if (job.directory !== undefined) {
    await syncDirectory([...new Set(job.hosts)], job.remoteShell ?? 'ssh', job.directory);
  }
  io.stderr.write(gpuNotes(launcher, job));
  // Of all starts: what is missing of an earlier one stays missing.
  const files = { lost: false };
  const run = (attempt: Attempt): Promise<JobResult> =>
    runOnce(launcher, attempt, options, io, files);
  const { outputDir, timeout, elastic, minWorkers, maxRestarts = defaultMaxRestarts } = options;
  const first = { job, directory: outputDir, timeoutSeconds: timeout };
  const { exitCode } =
    elastic === true
      ? await runElastic(
          first,
          { launcher: launcher.name, minWorkers, maxRestarts },
          run,
          (text) => void io.stderr.write(text),
        )
      : await run(first);
  return files.lost && exitCode === exitCodes.ok ? exitCodes.failure : exitCode;
}

async function runOnce(
  launcher: Launcher,
  { job, directory, timeoutSeconds }: Attempt,
  options: LaunchOptions,
  io: Io,
  files: { lost: boolean },
): Promise<JobResult> {
  if (directory !== undefined) prepareDirectory(directory, options.outputDir);
  const { workers, servers, graceMs, hosts, tolerateWorkerLoss } = job;
  const jobId = randomBytes(16).toString('hex');
  const remote =
    launcher.remote === true
      ? await Control.open({
          jobId,
          workers,
          servers,
          graceMs,
          silenceMs: toMs(options.hostTimeout),
          network: readNetwork(variablesOf(job)),
          ownHost: staysOnOwnHost(launcher.name, job),
          ...(hosts === undefined ? {} : { hosts }),
        })
      : undefined;
  // What they write goes to files as it is, where there are any.
  const progress = new ProgressRelay(io, directory === undefined);
  const onLoss = (file: string, error: Error): void => {
    files.lost = true;
    io.stderr.write(
      `gradlink launch: --output-dir: cannot write ${file}: ${plainReason(error)}; what follows is missing there\n`,
    );
  };
  try {
    const outerEnv = progress.environment(job.outerEnv);
    // Before each line stands a tag such as [12] or [s3].
    const tagged = options.tagOutput === true ? 6 : 0;
    const forTerminal =
      directory === undefined ? withColumns(outerEnv, io.stdout, tagged) : outerEnv;
    const started = { ...job, outerEnv: forTerminal };
    const whole = remote === undefined ? started : { ...started, control: remote.address };
    const result = await runJob(planned(launcher, whole, jobId), {
      mark: `${jobVariable}=${jobId}`,
      workers,
      tolerateWorkerLoss,
      env: started.outerEnv,
      signals: io,
      graceMs,
      ...(remote === undefined ? {} : { remote }),
      ...(timeoutSeconds === undefined ? {} : { timeoutMs: toMs(timeoutSeconds) }),
      output: {
        stdout: io.stdout,
        stderr: io.stderr,
        tag: options.tagOutput === true,
        progress,
        ...(directory === undefined ? {} : { directory, onLoss }),
      },
    });
    progress.stop();
    io.stderr.write(explain(result));
    return result;
  } finally {
    progress.stop();
    remote?.close();
  }
}

export const registerLaunch: Register = (program, io, done) => {
  const launching = program
    .command('launch')
    .description('start a command as several processes that form one job');
  addTable(launching, launchTable)
    .argument('<command...>', 'the command and its arguments; it is started without a shell')
    .passThroughOptions()
    .addHelpText('after', examples)
    .action(async (command: [string, ...string[]], options: TypedOptions) => {
      done(await launch(command, options, io));
    });
};
