// Whether all of a job is on the launcher's own host, so that nobody else needs to reach the launcher.
import { hostname } from 'node:os';

import type { JobSpec } from './job.js';
import { isOwnAddress } from '../network.js';

/** What batch systems and MPIs name hosts in. */
const namesHosts =
  /^(SLURM_JOB|SLURM_NODELIST|PBS_|LSB_|LOADL|COBALT_|FLUX_)|(HOST|NODE|MACHINE)_?(FILE|LIST)/i;

/** What Slurm calls this node, which may be another name than its own. A launcher may have carried it to other hosts. */
export function slurmNode(env: NodeJS.ProcessEnv): string | undefined {
  const { SLURMD_NODENAME: node = '' } = env;
  return node === '' ? undefined : node;
}

/** Whether a host's name, or its address, is this host's. */
export function isOwnHost(name: string): boolean {
  const bare = name
    .replace(/^.*@/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  const own = hostname().toLowerCase();
  if (['localhost', '::1', own, own.split('.')[0]].includes(bare)) return true;
  if (/^127(\.\d{1,3}){3}$/.test(bare)) return true;
  return isOwnAddress(bare);
}

/**
 * Where the hosts were not named it is mpirun that finds some: it looks further than this host only if an allocation, a
 * variable or an argument says so.
 *
 * @param launcher its name
 */
export function staysOnOwnHost(
  launcher: string,
  {
    hosts,
    starterArguments,
    env,
    outerEnv,
  }: Pick<JobSpec, 'hosts' | 'starterArguments' | 'env' | 'outerEnv'>,
): boolean {
  if (starterArguments.length > 0) return false;
  if (hosts !== undefined) return hosts.every(isOwnHost);
  if (launcher !== 'mpi') return false;
  return Object.entries({ ...outerEnv, ...env }).every(
    ([name, value]) => (value ?? '') === '' || !namesHosts.test(name),
  );
}
