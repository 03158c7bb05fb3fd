// The launcher `slurm`: srun starts a keeper for each process of the job, in the allocation it is called in or in one that
// it asks for.
import { spawnSync } from 'node:child_process';

import { jobEnvironment, type JobSpec, type Launcher } from './job.js';
import { keeperCommand } from './programs.js';

/**
 * Which of Slurm's MPI plugins: the one the user named, else one that the MPI to be loaded speaks and this Slurm has.
 *
 * @param listed what `srun --mpi=list` prints
 */
export function mpiPlugin(listed: string, mpi: string | undefined): string | undefined {
  const has = (name: string): boolean => listed.split(/[\s,:]+/).includes(name);
  const wanted = mpi === 'mpich' ? ['pmi2', 'pmix'] : ['pmix', 'pmi2'];
  return wanted.find(has);
}

function pluginArguments(job: JobSpec): readonly string[] {
  const { outerEnv } = job;
  if ((outerEnv.SLURM_MPI_TYPE ?? '') !== '') return [];
  const { stdout, stderr, error } = spawnSync('srun', ['--mpi=list'], {
    encoding: 'utf8',
    env: { ...outerEnv },
  });
  if (error !== undefined) {
    throw new Error(`expected Slurm's srun, but it cannot be started (${error.message})`);
  }
  const plugin = mpiPlugin(`${stdout}\n${stderr}`, job.env.GRADLINK_MPI ?? outerEnv.GRADLINK_MPI);
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
          // The keepers bind, as the launcher `local` does.
          '--cpu-bind=none',
          ...pluginArguments(job),
          // One task a named host, in this order.
          ...(hosts === undefined
            ? []
            : ['--distribution=arbitrary', `--nodelist=${hosts.join(',')}`]),
          ...job.starterArguments,
          ...keeperCommand(undefined),
          ...job.command,
        ],
        env: { ...jobEnvironment(job, jobId), GRADLINK_TRANSPORT: 'mpi' },
      },
    ];
  },
};
