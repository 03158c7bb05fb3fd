import { hostname } from 'node:os';

import { expect, it } from 'vitest';

import { staysOnOwnHost } from '../../lib/launch/own-host.js';

const job = { starterArguments: [], env: {}, outerEnv: {} };

it.each([
  ['mpi', {}, true],
  ['mpi', { hosts: ['localhost', hostname(), '127.0.0.1', '[::1]'] }, true],
  ['ssh', { hosts: ['me@localhost'] }, true],
  ['ssh', { hosts: ['localhost', 'somewhere-else'] }, false],
  // mpirun may be told of others.
  ['mpi', { starterArguments: ['--hostfile', 'hosts'] }, false],
  ['mpi', { outerEnv: { SLURM_JOB_ID: '17' } }, false],
  ['mpi', { outerEnv: { PBS_NODEFILE: '/nodes' } }, false],
  ['mpi', { outerEnv: { OMPI_MCA_orte_default_hostfile: '/hosts' } }, false],
  ['mpi', { env: { HYDRA_HOST_FILE: '/hosts' } }, false],
  ['mpi', { outerEnv: { HYDRA_HOST_FILE: '' } }, true],
  ['slurm', {}, false],
])('%s with %j stays on its host: %s', (launcher, more, expected) => {
  expect(staysOnOwnHost(launcher, { ...job, ...more })).toBe(expected);
});
