// A job: a command started as several processes that know their ranks.

import { gpuPerWorkerVariable, ownGpuVariable } from './gpus.js';
import { roleEnvVariable, keeperVariables } from './role-env.js';
import { meetingPoint, placeVariables } from './torchrun.js';

/** A worker runs the user's command, a server keeps a share of the distributed store. */
export type Role = 'worker' | 'server';

/** A program and its arguments, started without a shell. */
export type Command = readonly [string, ...string[]];

export interface JobSpec {
  readonly command: Command;
  readonly workers: number;
  readonly servers: number;
  /** Variables of every process of the job, on top of the launcher's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Additional variables per role. */
  readonly roleEnv?: Readonly<Record<Role, Readonly<Record<string, string>>>>;
  /** Cores to split among the processes of this host; empty: no binding. */
  readonly cores: readonly number[];
  /** How many GPUs each worker sees; absent: all that the launcher sees. */
  readonly gpusPerWorker?: number;
  readonly tolerateWorkerLoss: boolean;
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly outerEnv: Readonly<Record<string, string | undefined>>;
  /** The host of each process, workers first; absent: chosen by mpirun or srun. */
  readonly hosts?: readonly string[];
  /** Program and options that run a command on another host; absent: mpirun's default, `ssh`. */
  readonly remoteShell?: string;
  /** The mpirun to use; absent: the one in PATH that matches GRADLINK_MPI. */
  readonly mpirun?: string;
  /** Additional arguments of mpirun or srun, before the command. */
  readonly starterArguments: readonly string[];
  /** Working folder on all hosts; absent: the launcher's. */
  readonly directory?: string;
  /** Addresses and port of the launcher, for processes started by mpirun or srun. */
  readonly control?: string;
}

/** One process to start on this host. */
export interface ProcessPlan {
  readonly index: number;
  /** Absent for a starter such as `mpirun`. */
  readonly role?: Role;
  /** Its output tag: `0` for worker 0, `s0` for server 0. */
  readonly label: string;
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  /** The cores it is bound to; absent: all. */
  readonly cores?: readonly number[];
  /** Our open descriptors above 2 that it inherits under the same numbers. */
  readonly inherited?: readonly number[];
}

/** A way to place a job's processes. Registered in launchers.ts. */
export interface Launcher {
  readonly name: string;
  /** Whether it starts a program that starts the job's processes, on this host or others. */
  readonly remote?: boolean;
  readonly needsHosts?: boolean;
  /** The processes to start, in rank order; `jobId` is the secret that the job's processes share. */
  plan(job: JobSpec, jobId: string): readonly ProcessPlan[];
}

/** The variable that every process of a job carries: the job's secret. */
export const jobVariable = 'GRADLINK_JOB';

/** The launcher's addresses and port, `10.0.0.1,192.168.1.5:40123`, for processes started by mpirun or srun. */
export const launcherVariable = 'GRADLINK_LAUNCHER';

/** Variables that the launcher sets; users cannot set them for a job. */
export const launcherVariables: readonly string[] = [
  jobVariable,
  'GRADLINK_RANK',
  'GRADLINK_SIZE',
  'GRADLINK_LOCAL_RANK',
  'GRADLINK_LOCAL_SIZE',
  'GRADLINK_NUM_WORKERS',
  'GRADLINK_NUM_SERVERS',
  'GRADLINK_ROLE',
  'GRADLINK_SERVER_RANK',
  'GRADLINK_TOLERATE_WORKER_LOSS',
  'GRADLINK_RESTARTS',
  'GRADLINK_TRANSPORT',
  launcherVariable,
  roleEnvVariable,
  'GRADLINK_BIND_TO',
  gpuPerWorkerVariable,
  ownGpuVariable,
  'GRADLINK_KEPT',
  ...placeVariables,
];

export function variablesOf({
  outerEnv,
  env,
}: Pick<JobSpec, 'outerEnv' | 'env'>): Readonly<Record<string, string | undefined>> {
  return { ...outerEnv, ...env };
}

/** The variables that describe the job to each process. */
export function jobEnvironment(job: JobSpec, jobId: string): Readonly<Record<string, string>> {
  return {
    ...meetingPoint(job, jobId),
    ...job.env,
    [jobVariable]: jobId,
    GRADLINK_NUM_WORKERS: String(job.workers),
    GRADLINK_NUM_SERVERS: String(job.servers),
    ...(job.tolerateWorkerLoss ? { GRADLINK_TOLERATE_WORKER_LOSS: '1' } : {}),
    ...(job.control === undefined
      ? {}
      : { [launcherVariable]: job.control, ...keeperVariables(job.roleEnv) }),
    // Only keepers read this; here the launcher binds.
    ...(job.control !== undefined && job.cores.length === 0 ? { GRADLINK_BIND_TO: 'none' } : {}),
    ...(job.control !== undefined && job.gpusPerWorker !== undefined
      ? { [gpuPerWorkerVariable]: String(job.gpusPerWorker) }
      : {}),
  };
}

/** `0` for worker 0, `s0` for server 0. */
export function labelOf(role: Role, index: number): string {
  return role === 'worker' ? String(index) : `s${String(index)}`;
}
