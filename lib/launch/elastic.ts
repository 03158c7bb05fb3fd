// Jobs that go on with fewer workers when one is lost: the others are started again, and take up their last checkpoint.
import { join } from 'node:path';

import type { JobSpec } from './job.js';
import type { JobResult } from './run-job.js';

/** One start of a job. */
export interface Attempt {
  readonly job: JobSpec;
  /** Where the output of its processes is written. */
  readonly directory?: string | undefined;
  /** What is left of the time limit. */
  readonly timeoutSeconds?: number | undefined;
}

/** How often the job has been started again, in every process of it; absent in a job that is not elastic. */
const restartsVariable = 'GRADLINK_RESTARTS';

/**
 * Runs a job until it ends well or in a way that is no loss: a worker that a signal killed is lost, one that exits with an
 * error would do so again. Each start has one worker fewer, and writes its output to a folder of its own.
 *
 * @param tell what the user is to know between two starts
 */
export async function runElastic(
  first: Attempt,
  minWorkers: number,
  run: (attempt: Attempt) => Promise<JobResult>,
  tell: (text: string) => void,
): Promise<JobResult> {
  const start = performance.now();
  for (let restarts = 0; ; ++restarts) {
    const workers = first.job.workers - restarts;
    const left = secondsLeft(first, start);
    const result = await run({
      ...first,
      job: {
        ...first.job,
        workers,
        env: { ...first.job.env, [restartsVariable]: String(restarts) },
      },
      ...(left === undefined ? {} : { timeoutSeconds: left }),
      ...(restarts === 0 || first.directory === undefined
        ? {}
        : { directory: join(first.directory, `restart-${restarts}`) }),
    });
    if (!lostWorker(result)) return result;
    if (workers - 1 < minWorkers) {
      tell(`gradlink launch: fewer than ${minWorkers} workers are left (--min-workers).\n`);
      return result;
    }
    // A limit that is over by now would be told of by the next start, which is none of the user's business.
    if (secondsLeft(first, start) === 0) return result;
    tell(`gradlink launch: the job starts again with ${workers - 1} workers (--elastic).\n`);
  }
}

function secondsLeft({ timeoutSeconds }: Attempt, start: number): number | undefined {
  if (timeoutSeconds === undefined) return undefined;
  return Math.max(0, timeoutSeconds - (performance.now() - start) / 1000);
}

function lostWorker({ interruption, survivors }: JobResult): boolean {
  if (interruption?.kind !== 'failure' || survivors.length > 0) return false;
  const { member, manner } = interruption.failure;
  return member.role === 'worker' && manner === 'killed';
}
