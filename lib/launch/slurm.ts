// The launcher `slurm`: srun starts a keeper for each process, in the current allocation or a new one.
import { spawnSync } from 'node:child_process';

import { jobEnvironment, type JobSpec, type Launcher } from './job.js';
import { starterNetwork } from './library-network.js';
import { keeperCommand } from './programs.js';

/**
 * The MPI plugin for Slurm: the user's choice, else one that both the MPI library and this Slurm support.
 *
 * @param listed what `srun --mpi=list` prints
 */
export function mpiPlugin(listed: string, mpi: string | undefined): string | undefined {
  const has = (name: string): boolean => listed.split(/[\s,:]+/).includes(name);
  const wanted = mpi === 'mpich' ? ['pmi2', 'pmix'] : ['pmix', 'pmi2'];
  return wanted.find(has);
}

function ask(job: JobSpec, program: string, ...args: readonly string[]): string {
  const { stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...job.outerEnv },
  });
  if (error !== undefined) {
    throw new Error(`expected Slurm's ${program}, but it cannot be started (${error.message})`);
  }
  return `${stdout}\n${stderr}`;
}

/** The keepers bind, so Slurm must not. */
function bindingArguments(job: JobSpec): readonly string[] {
  const config = ask(job, 'scontrol', 'show', 'config');
  return /^TaskPlugin\s*=.*\b(affinity|cgroup)/m.test(config) ? ['--cpu-bind=none'] : [];
}

function pluginArguments(job: JobSpec): readonly string[] {
  const { outerEnv } = job;
  if ((outerEnv.SLURM_MPI_TYPE ?? '') !== '') return [];
  const listed = ask(job, 'srun', '--mpi=list');
  const plugin = mpiPlugin(listed, job.env.GRADLINK_MPI ?? outerEnv.GRADLINK_MPI);
  return plugin === undefined ? [] : [`--mpi=${plugin}`];
}

export const slurm: Launcher = {
  name: 'slurm',
  remote: true,
  plan(job, jobId) {
    const { hosts } = job;
    return [
      {
        index: 0,
        label: 'srun',
        command: [
          'srun',
          `--ntasks=${String(job.workers + job.servers)}`,
          '--export=ALL',
          '--input=none',
          '--kill-on-bad-exit=1',
          ...bindingArguments(job),
          ...pluginArguments(job),
          // One task per named host, in this order.
          ...(hosts === undefined
            ? []
            : ['--distribution=arbitrary', `--nodelist=${hosts.join(',')}`]),
          ...job.starterArguments,
          ...keeperCommand(undefined),
          ...job.command,
        ],
        env: {
          ...starterNetwork(job),
          ...jobEnvironment(job, jobId),
          GRADLINK_TRANSPORT: 'mpi',
        },
      },
    ];
  },
};
