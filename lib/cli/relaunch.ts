// A command that needs several processes starts itself as a job of this host when nobody has.
import { randomBytes } from 'node:crypto';

import type { Io } from './io.js';
import { explain } from './launch/report.js';
import { ProgressRelay } from './progress/relay.js';
import { withColumns } from './terminal/terminal-width.js';
import { allowedCores } from '../launch/cores.js';
import { jobVariable } from '../launch/job.js';
import { local } from '../launch/local.js';
import { runJob } from '../launch/run-job.js';
import { packageFile } from '../package-folder.js';

/** Milliseconds between SIGTERM and SIGKILL. */
const graceMs = 5000;

/**
 * Runs `gradlink ARGUMENTS` as the ranks of a job on this host; what they write is passed on.
 *
 * @returns the job's exit code
 */
export async function runAsJob(workers: number, args: readonly string[], io: Io): Promise<number> {
  const program = packageFile('bench/gradlink.js');
  const jobId = randomBytes(16).toString('hex');
  const progress = new ProgressRelay(io);
  const job = {
    command: [process.execPath, program, ...args] as const,
    workers,
    servers: 0,
    env: {},
    cores: allowedCores(),
    tolerateWorkerLoss: false,
    graceMs,
    outerEnv: withColumns(progress.environment(io.env), io.stdout),
    starterArguments: [],
  };
  try {
    const result = await runJob(local.plan(job, jobId), {
      mark: `${jobVariable}=${jobId}`,
      workers,
      tolerateWorkerLoss: false,
      env: job.outerEnv,
      signals: io,
      graceMs,
      output: { stdout: io.stdout, stderr: io.stderr, tag: false, progress },
    });
    progress.stop();
    io.stderr.write(explain(result));
    return result.exitCode;
  } finally {
    progress.stop();
  }
}
