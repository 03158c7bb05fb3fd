// The launchers `mpi` and `ssh`: mpirun of Open MPI or MPICH starts a keeper for each process of the job.
import { spawnSync } from 'node:child_process';

import { jobEnvironment, launcherVariables, type JobSpec, type Launcher } from './job.js';
import { starterNetwork } from './library-network.js';
import { keeperCommand } from './programs.js';

/** The kind of mpirun; their options differ widely. */
export type MpiFlavor = 'openmpi4' | 'openmpi5' | 'hydra';

/** @param version what `mpirun --version` prints */
export function flavorOf(version: string): MpiFlavor | undefined {
  const openMpi = /\((?:Open MPI|OpenRTE)\) v?(\d+)\./.exec(version)?.[1];
  if (openMpi !== undefined) return Number(openMpi) >= 5 ? 'openmpi5' : 'openmpi4';
  if (/prterun|PRRTE/i.test(version)) return 'openmpi5';
  return /HYDRA|Intel\(R\) MPI/i.test(version) ? 'hydra' : undefined;
}

/** Debian and others install several side by side; GRADLINK_MPI names the library that the processes will load. */
function candidates(mpi: string | undefined): readonly string[] {
  if (mpi === 'openmpi') return ['mpirun.openmpi', 'mpirun'];
  if (mpi === 'mpich') return ['mpirun.mpich', 'mpiexec.hydra', 'mpirun'];
  return ['mpirun', 'mpiexec'];
}

function findMpirun(job: JobSpec): { readonly program: string; readonly flavor: MpiFlavor } {
  const mpi = job.env.GRADLINK_MPI ?? job.outerEnv.GRADLINK_MPI;
  const programs = job.mpirun === undefined ? candidates(mpi) : [job.mpirun];
  for (const program of programs) {
    const { stdout, stderr, error } = spawnSync(program, ['--version'], {
      encoding: 'utf8',
      env: { ...job.outerEnv },
    });
    if (error !== undefined) continue;
    const flavor = flavorOf(`${stdout}\n${stderr}`);
    if (flavor !== undefined) return { program, flavor };
    throw new Error(
      `expected Open MPI's or MPICH's ${program}, got ${stdout.split('\n')[0] ?? 'nothing'}`,
    );
  }
  throw new Error(
    `expected Open MPI's or MPICH's mpirun, found none as ${programs.join(' or ')}. Install one (Debian: openmpi-bin or mpich), or name it with --mpirun`,
  );
}

/**
 * Names of the variables that reach every process: the job's own, and those that tune this library. MPICH passes
 * mpirun's whole environment; Open MPI only these.
 */
function passedNames(job: JobSpec, names: readonly string[]): readonly string[] {
  const tuning = Object.keys(job.outerEnv).filter(
    (name) => name.startsWith('GRADLINK_') && !launcherVariables.includes(name),
  );
  // Open MPI passes its own settings on; with -x it warns.
  return [...new Set([...names, ...tuning])].filter((name) => !name.startsWith('OMPI_MCA_')).sort();
}

function openMpiArguments(
  job: JobSpec,
  flavor: 'openmpi4' | 'openmpi5',
  ssh: boolean,
  names: readonly string[],
): readonly string[] {
  const old = flavor === 'openmpi4';
  const tune = (name: string, value: string): string[] => [
    old ? '--mca' : '--prtemca',
    name,
    value,
  ];
  const { hosts } = job;
  return [
    // mpirun refuses root otherwise, and containers run as root.
    ...(process.getuid?.() === 0 ? ['--allow-run-as-root'] : []),
    // The keepers bind instead.
    '--bind-to',
    'none',
    // Inside an allocation mpirun would start through Slurm, PBS or LSF.
    ...(ssh
      ? [
          ...tune('plm', old ? 'rsh' : 'ssh'),
          ...tune('ras', old ? '^slurm,tm,gridengine' : '^slurm,pbs,lsf,gridengine'),
        ]
      : []),
    ...(job.remoteShell === undefined
      ? []
      : tune(old ? 'plm_rsh_agent' : 'plm_ssh_agent', job.remoteShell)),
    ...(hosts === undefined
      ? old
        ? ['--oversubscribe']
        : ['--map-by', ':OVERSUBSCRIBE']
      : [
          // Full names: otherwise node1.lab and node1.dmz are one host, and ranks on them cannot be mapped.
          ...tune(old ? 'orte_keep_fqdn_hostnames' : 'prte_keep_fqdn_hostnames', '1'),
          // One process per named host, in this order.
          ...(old ? ['--mca', 'rmaps', 'seq'] : ['--map-by', 'seq']),
          '--host',
          hosts.join(','),
        ]),
    ...(job.directory === undefined ? [] : ['-wdir', job.directory]),
    ...passedNames(job, names).flatMap((name) => ['-x', name]),
  ];
}

function hydraArguments(job: JobSpec, ssh: boolean): readonly string[] {
  return [
    ...(ssh ? ['-launcher', 'ssh'] : []),
    ...(job.remoteShell === undefined ? [] : ['-launcher-exec', job.remoteShell]),
    ...(job.hosts === undefined ? [] : ['-hosts', job.hosts.join(',')]),
    ...(job.directory === undefined ? [] : ['-wdir', job.directory]),
  ];
}

function mpiLauncher(name: 'mpi' | 'ssh'): Launcher {
  const ssh = name === 'ssh';
  return {
    name,
    remote: true,
    ...(ssh ? { needsHosts: true } : {}),
    plan(job, jobId) {
      const { program, flavor } = findMpirun(job);
      const env = {
        ...starterNetwork(job),
        ...jobEnvironment(job, jobId),
        GRADLINK_TRANSPORT: 'mpi',
      };
      const own =
        flavor === 'hydra'
          ? hydraArguments(job, ssh)
          : openMpiArguments(job, flavor, ssh, Object.keys(env));
      return [
        {
          index: 0,
          label: 'mpirun',
          command: [
            program,
            ...own,
            ...job.starterArguments,
            '-n',
            String(job.workers + job.servers),
            ...keeperCommand(job.directory),
            ...job.command,
          ],
          env,
        },
      ];
    },
  };
}

export const mpi = mpiLauncher('mpi');
export const ssh = mpiLauncher('ssh');
