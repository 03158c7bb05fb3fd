// The launchers by name. A new one needs a file beside this one and a line here.
import type { Launcher } from './job.js';
import { local } from './local.js';
import { mpi, ssh } from './mpirun.js';
import { slurm } from './slurm.js';

export const launchers: Readonly<Record<string, Launcher>> = Object.fromEntries(
  [local, mpi, ssh, slurm].map((launcher) => [launcher.name, launcher]),
);
