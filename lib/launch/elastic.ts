// Jobs that go on with fewer workers when one is lost: the others are started again, and take up their last checkpoint.
import { join } from 'node:path';

import type { JobSpec } from './job.js';
import type { Member } from './members.js';
import type { JobResult } from './run-job.js';
import { shrink } from './shrink.js';

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

/** What may be lost. */
export interface ElasticLimits {
  /** The name of what starts the processes. */
  readonly launcher: string;
  /** The fewest workers that the job goes on with. */
  readonly minWorkers: number;
  /** Starts after a worker that exited with an error: the others may well do the same. */
  readonly maxRestarts: number;
}

/** As torchrun's agent. */
export const defaultMaxRestarts = 3;

/**
 * Runs a job until it ends well or in a way that is no loss of a worker. One that a signal killed is lost, and those of a
 * host of which nothing more is heard; one that exited with an error is too, but may have erred for a reason that all have,
 * so that only so many of those count. Each start has fewer workers, and writes its output to a folder of its own.
 *
 * @param tell what the user is to know between two starts
 */
export async function runElastic(
  first: Attempt,
  { launcher, minWorkers, maxRestarts }: ElasticLimits,
  run: (attempt: Attempt) => Promise<JobResult>,
  tell: (text: string) => void,
): Promise<JobResult> {
  const start = performance.now();
  let errors = 0;
  let { job } = first;
  for (let restarts = 0; ; ++restarts) {
    const left = secondsLeft(first, start);
    const result = await run({
      ...first,
      job: { ...job, env: { ...job.env, [restartsVariable]: String(restarts) } },
      ...(left === undefined ? {} : { timeoutSeconds: left }),
      ...(restarts === 0 || first.directory === undefined
        ? {}
        : { directory: join(first.directory, `restart-${restarts}`) }),
    });
    const loss = lossOf(result);
    if (loss === undefined) return result;
    // A job that only loses servers would start forever.
    const counts = loss.kind === 'error' || loss.members.every(({ role }) => role === 'server');
    if (counts && ++errors > maxRestarts) {
      const often = maxRestarts === 1 ? 'once' : `${maxRestarts} times`;
      tell(
        maxRestarts === 0
          ? 'gradlink launch: a worker that exits with an error ends the job (--max-restarts 0).\n'
          : `gradlink launch: the job was restarted ${often} after a worker's error, and is not restarted again (--max-restarts).\n`,
      );
      return result;
    }
    const shrunk = shrink(job, loss.members, launcher);
    if ('reason' in shrunk) {
      tell(`gradlink launch: the job cannot start again (--elastic): ${shrunk.reason}.\n`);
      return result;
    }
    ({ job } = shrunk);
    if (job.workers < minWorkers) {
      tell(`gradlink launch: fewer than ${minWorkers} workers are left (--min-workers).\n`);
      return result;
    }
    // The next start would report a limit that has passed by now, which is of no use to the user.
    if (secondsLeft(first, start) === 0) return result;
    const few = job.workers === 1 ? 'one worker' : `${job.workers} workers`;
    const where = shrunk.without.length === 0 ? '' : `, without ${shrunk.without.join(', ')}`;
    tell(`gradlink launch: the job starts again with ${few}${where} (--elastic).\n`);
  }
}

function secondsLeft({ timeoutSeconds }: Attempt, start: number): number | undefined {
  if (timeoutSeconds === undefined) return undefined;
  return Math.max(0, timeoutSeconds - (performance.now() - start) / 1000);
}

interface Loss {
  readonly kind: 'host' | 'signal' | 'error';
  readonly members: readonly Member[];
}

/** What was lost; undefined where the job ended otherwise, or could not be ended. */
function lossOf({ interruption, survivors, lost }: JobResult): Loss | undefined {
  if (interruption?.kind !== 'failure' || survivors.length > 0) return undefined;
  // Whatever else failed then, ranks that waited for the lost ones or mpirun itself, failed over it.
  if (lost.length > 0) return { kind: 'host', members: lost };
  const { member, manner } = interruption.failure;
  if (member.role !== 'worker') return undefined;
  if (manner === 'killed') return { kind: 'signal', members: [member] };
  // What could not even be started never will be.
  const ran = manner === 'exited' && member.pid !== undefined;
  return ran ? { kind: 'error', members: [member] } : undefined;
}
