// Elastic jobs: when a worker is lost, the others are restarted from their last checkpoint.
import { join } from 'node:path';

import type { JobSpec } from './job.js';
import type { Member } from './members.js';
import type { JobResult } from './run-job.js';
import { shrink } from './shrink.js';

/** One start of a job. */
export interface Attempt {
  readonly job: JobSpec;
  /** The folder for the output of its processes. */
  readonly directory?: string | undefined;
  /** The rest of the time limit. */
  readonly timeoutSeconds?: number | undefined;
}

/** The number of restarts so far, set in every process of an elastic job. */
const restartsVariable = 'GRADLINK_RESTARTS';

export interface ElasticLimits {
  /** The name of the launcher. */
  readonly launcher: string;
  /** The job fails with fewer workers than this. */
  readonly minWorkers: number;
  /** Restarts after a worker that exited with an error: the cause may affect every worker. */
  readonly maxRestarts: number;
}

/** As torchrun's agent. */
export const defaultMaxRestarts = 3;

/**
 * Runs a job and restarts it with fewer workers after a loss. A worker is lost if a signal killed it or its host is
 * silent. A worker that exits with an error also counts as lost, but only `maxRestarts` times. Each start writes its
 * output to its own folder.
 *
 * @param report reports a restart to the user
 */
export async function runElastic(
  first: Attempt,
  { launcher, minWorkers, maxRestarts }: ElasticLimits,
  run: (attempt: Attempt) => Promise<JobResult>,
  report: (text: string) => void,
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
    // Otherwise a job that only loses servers would restart forever.
    const counts = loss.kind === 'error' || loss.members.every(({ role }) => role === 'server');
    if (counts && ++errors > maxRestarts) {
      const often = maxRestarts === 1 ? 'once' : `${maxRestarts} times`;
      report(
        maxRestarts === 0
          ? 'gradlink launch: a worker that exits with an error ends the job (--max-restarts 0).\n'
          : `gradlink launch: the job was restarted ${often} after a worker's error, and is not restarted again (--max-restarts).\n`,
      );
      return result;
    }
    const shrunk = shrink(job, loss.members, launcher);
    if ('reason' in shrunk) {
      report(`gradlink launch: the job cannot start again (--elastic): ${shrunk.reason}.\n`);
      return result;
    }
    ({ job } = shrunk);
    if (job.workers < minWorkers) {
      report(`gradlink launch: fewer than ${minWorkers} workers are left (--min-workers).\n`);
      return result;
    }
    // The next start would only report that the limit has passed.
    if (secondsLeft(first, start) === 0) return result;
    const few = job.workers === 1 ? 'one worker' : `${job.workers} workers`;
    const where = shrunk.without.length === 0 ? '' : `, without ${shrunk.without.join(', ')}`;
    report(`gradlink launch: the job starts again with ${few}${where} (--elastic).\n`);
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

/** What was lost; undefined if the job ended another way or could not be ended. */
function lossOf({ interruption, survivors, lost }: JobResult): Loss | undefined {
  if (interruption?.kind !== 'failure' || survivors.length > 0) return undefined;
  // A lost host explains other failures: ranks that waited for it, and mpirun itself.
  if (lost.length > 0) return { kind: 'host', members: lost };
  const { member, manner } = interruption.failure;
  if (member.role !== 'worker') return undefined;
  if (manner === 'killed') return { kind: 'signal', members: [member] };
  // A command that could not be started will fail again.
  const ran = manner === 'exited' && member.pid !== undefined;
  return ran ? { kind: 'error', members: [member] } : undefined;
}
