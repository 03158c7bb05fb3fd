// The other hosts: those of a hostfile, or of the job that this process is a rank of.
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
 * This process's rank in a multi-rank job that `gradlink launch` started with this command. A child of another
 * launcher's rank may be alone and would wait for the others in vain.
 */
export function jobRank(env: Env): number | undefined {
  if ((env[jobVariable] ?? '') === '') return undefined;
  try {
    const job = readJob(env);
    return job === undefined || job.size === 1 ? undefined : job.rank;
  } catch {
    // The launcher's own finding says why.
    return undefined;
  }
}

function hostsOf(file: string): readonly string[] {
  try {
    return parseHostfile(readInput(file, 'a list of hosts')).map(({ name }) => name);
  } catch {
    // The hostfile's own finding names the invalid line.
    return [];
  }
}

export interface Around {
  readonly env: Env;
  readonly hostfile?: string | undefined;
  readonly remoteShell?: string | undefined;
}

/** Never fails: errors become findings. */
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
