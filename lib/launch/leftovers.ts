// Removes what an MPI leaves on a host when its processes and daemon were killed before cleaning up.
import { lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

const sharedMemory = '/dev/shm';

/**
 * Open MPI's shared segments of one process in /dev/shm, vader_segment.HOST.USER.JOB.RANK, with the job in hexadecimal.
 * MPICH unlinks its segments at start.
 *
 * @param files names in /dev/shm
 * @param env of any process of the job on its host
 * @param rank its MPI rank
 */
export function segmentsOf(files: readonly string[], env: Env, rank: number): string[] {
  const job = env.PMIX_NAMESPACE ?? '';
  if (!/^\d+$/.test(job)) return [];
  const end = `.${Number(job).toString(16)}.${String(rank)}`;
  return files.filter((name) => name.startsWith('vader_segment.') && name.endsWith(end));
}

export function removeSegments(env: Env, rank: number): void {
  try {
    for (const name of segmentsOf(readdirSync(sharedMemory), env, rank)) {
      rmSync(join(sharedMemory, name), { force: true });
    }
  } catch {
    // The folder does not exist or belongs to another user.
  }
}

/**
 * Removes the session folder of Open MPI's ended daemon with its sockets, and ompi.HOST.UID unless other jobs use it.
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
    // Another keeper of this host removed it first, or another job uses it.
  }
}
