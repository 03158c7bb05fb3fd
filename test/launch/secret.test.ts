// A command line is what every user of a host can read: no launcher puts the job's secret on one.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, expect, it } from 'vitest';

import { jobVariable, type JobSpec } from '../../lib/launch/job.js';
import { local } from '../../lib/launch/local.js';
import { mpi, ssh } from '../../lib/launch/mpirun.js';
import { slurm } from '../../lib/launch/slurm.js';
import { folderOfAllTests } from '../support/folders.js';

const secret = '0123456789abcdef0123456789abcdef';

/** Programs that say what they are and start nothing. */
let folder = '';
const starters = {
  'openmpi-4': 'mpirun (Open MPI) 4.1.4',
  'openmpi-5': 'mpirun (Open MPI) 5.0.3',
  hydra: 'HYDRA build details:',
  srun: 'MPI plugin types are... pmix pmi2',
  scontrol: 'TaskPlugin = task/affinity',
};
folderOfAllTests((made) => (folder = made));
beforeAll(() => {
  for (const [name, says] of Object.entries(starters)) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho '${says}'\n`, { mode: 0o755 });
  }
});

const remote = { control: '10.0.0.1:4000', hosts: ['node1', 'node2'] };
it.each([
  ['local', local, undefined, {}],
  ['mpi with Open MPI 4', mpi, 'openmpi-4', remote],
  ['mpi with Open MPI 5', mpi, 'openmpi-5', remote],
  ['mpi with MPICH', mpi, 'hydra', remote],
  ['ssh with Open MPI 4', ssh, 'openmpi-4', remote],
  ['ssh with Open MPI 5', ssh, 'openmpi-5', remote],
  ['ssh with MPICH', ssh, 'hydra', remote],
  ['slurm', slurm, undefined, remote],
] as const)('%s', (_, launcher, mpirun, places) => {
  const job: JobSpec = {
    command: ['node', 'app.js'],
    workers: 1,
    servers: 1,
    env: {},
    cores: [],
    tolerateWorkerLoss: true,
    graceMs: 1000,
    outerEnv: { PATH: `${folder}:/usr/bin:/bin` },
    starterArguments: [],
    directory: '/there',
    ...(mpirun === undefined ? {} : { mpirun: join(folder, mpirun) }),
    ...places,
  };
  const plans = launcher.plan(job, secret);
  expect(plans.length).toBeGreaterThan(0);
  for (const { command, env, label } of plans) {
    expect(env[jobVariable]).toBe(secret);
    expect([label, ...command].join(' ')).not.toContain(secret);
  }
});
