// Tells whether a whole job runs on the launcher's host, so that the launcher need not be reachable.
import { hostname } from 'node:os';

import type { JobSpec } from './job.js';
import { isOwnAddress } from '../network.js';

/** Variables in which batch systems and MPIs name hosts. */
const namesHosts =
  /^(SLURM_JOB|SLURM_NODELIST|PBS_|LSB_|LOADL|COBALT_|FLUX_)|(HOST|NODE|MACHINE)_?(FILE|LIST)/i;

/** Slurm's name of this node, which may differ from the host name. A launcher may have carried it to other hosts. */
export function slurmNode(env: NodeJS.ProcessEnv): string | undefined {
  const { SLURMD_NODENAME: node = '' } = env;
  return node === '' ? undefined : node;
}

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
 * If no hosts were named, mpirun chooses: it leaves this host only if an allocation, a variable or an argument says so.
 *
 * @param launcher the launcher's name
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
