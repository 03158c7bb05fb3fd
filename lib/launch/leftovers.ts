// What an MPI leaves on a host when its processes and its daemon are killed before they can clean up.
import { lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

const sharedMemory = '/dev/shm';

/**
 * Names of Open MPI's shared segments of one process, in /dev/shm: vader_segment.HOST.USER.JOB.RANK, the job as hexadecimal
 * digits. MPICH unlinks its segments while it starts.
 *
 * @param files what is there
 * @param env of the process, or of another of the job on its host
 * @param rank its MPI rank
 */
export function segmentsOf(files: readonly string[], env: Env, rank: number): string[] {
  const job = env.PMIX_NAMESPACE ?? '';
  if (!/^\d+$/.test(job)) return [];
  const end = `.${Number(job).toString(16)}.${String(rank)}`;
  return files.filter((name) => name.startsWith('vader_segment.') && name.endsWith(end));
}

/** Removes the segments of a process that has ended. */
export function removeSegments(env: Env, rank: number): void {
  try {
    for (const name of segmentsOf(readdirSync(sharedMemory), env, rank)) {
      rmSync(join(sharedMemory, name), { force: true });
    }
  } catch {
    // No such folder, or another user's: then they are not ours.
  }
}

/**
 * Removes the folder of Open MPI's daemon, which is gone, and with it the sockets in it; and the folder of all of this
 * user's jobs, ompi.HOST.UID, unless there are others.
 */
export function removeSession(env: Env): void {
  const [session] =
    /^\/.*\/ompi\.[^/]+\/(?:pid|jf)\.\d+(?=\/|$)/.exec(env.PMIX_SERVER_TMPDIR ?? '') ?? [];
  if (session === undefined) return;
  try {
    rmSync(session, { recursive: true, force: true });
    const sessions = dirname(session);
    if (lstatSync(sessions).uid === process.getuid?.()) rmdirSync(sessions);
  } catch {
    // Another keeper of this host removes it at the same time, or another job is in it.
  }
}
