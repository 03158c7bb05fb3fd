// The hosts around this one: those of a hostfile, or of the job that this process is a rank of.
import { readJob } from '../../communicator/joining/job.js';
import { jobVariable } from '../../launch/job.js';
import { parseHostfile } from '../../launch/hosts.js';
import { readInput } from '../../results/input-file.js';
import type { Finding } from '../types.js';
import { hostFindings } from './compare.js';
import { lookOverJob } from './over-job.js';
import { lookOverShell } from './over-shell.js';

type Env = NodeJS.ProcessEnv;

/**
 * The rank of this process in a job of several that `gradlink launch` started with this very command. What a rank of
 * another launcher's job starts may be alone, and would wait for the others in vain.
 */
export function jobRank(env: Env): number | undefined {
  if ((env[jobVariable] ?? '') === '') return undefined;
  try {
    const job = readJob(env);
    return job === undefined || job.size === 1 ? undefined : job.rank;
  } catch {
    // A line of the launcher says why.
    return undefined;
  }
}

function hostsOf(file: string): readonly string[] {
  try {
    return parseHostfile(readInput(file, 'a list of hosts')).map(({ name }) => name);
  } catch {
    // The line of the hostfile says which line of it makes no sense.
    return [];
  }
}

export interface Around {
  readonly env: Env;
  readonly hostfile?: string | undefined;
  readonly remoteShell?: string | undefined;
}

/** Never fails: what cannot be looked at is a finding. */
export async function hostsAround({ env, hostfile, remoteShell }: Around): Promise<Finding[]> {
  if (jobRank(env) !== undefined) {
    try {
      const { seen } = await lookOverJob(env);
      return hostFindings(seen, []);
    } catch (error) {
      const text = `the ranks could not exchange it: ${(error as Error).message}`;
      const advice =
        'the lines above say what each rank has; gradlink doctor --hostfile needs no world';
      return [{ name: 'hosts', status: 'degraded', text, advice }];
    }
  }
  const hosts = hostfile === undefined ? [] : hostsOf(hostfile);
  if (hosts.length === 0) return [];
  const { seen, unseen } = await lookOverShell(hosts, remoteShell, env);
  return hostFindings(seen, unseen);
}
