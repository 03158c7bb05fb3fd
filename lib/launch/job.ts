// What a job is: a command started as several processes that know their places.

import { gpuPerWorkerVariable, ownGpuVariable } from './gpus.js';
import { roleEnvVariable, toldToKeepers } from './role-env.js';
import { meetingPoint, placeVariables } from './torchrun.js';

/** A worker runs the user's command, a server keeps a share of the distributed store. */
export type Role = 'worker' | 'server';

/** A program and its arguments, started without a shell. */
export type Command = readonly [string, ...string[]];

/** A job as the user asked for it. */
export interface JobSpec {
  /** What the workers run. */
  readonly command: Command;
  /** Number of worker processes, the ranks 0 to workers - 1. */
  readonly workers: number;
  /** Number of server processes, 0 where the job needs none. */
  readonly servers: number;
  /** Variables of every process of the job, on top of the launcher's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** More for the workers alone, and for the servers. */
  readonly roleEnv?: Readonly<Record<Role, Readonly<Record<string, string>>>>;
  /** Cores to share out among the processes of this host; none: they run where the kernel puts them. */
  readonly cores: readonly number[];
  /** How many GPUs of its host each worker sees; absent: all that the launcher sees. */
  readonly gpusPerWorker?: number;
  /** Whether the job goes on without workers that fail. */
  readonly tolerateWorkerLoss: boolean;
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** The launcher's own environment. */
  readonly outerEnv: Readonly<Record<string, string | undefined>>;
  /** The host of each process, workers first; absent: wherever mpirun or srun puts them. */
  readonly hosts?: readonly string[];
  /** Program and options that run a command on another host; absent: what mpirun takes, `ssh`. */
  readonly remoteShell?: string;
  /** The mpirun to use; absent: the one in PATH that goes with GRADLINK_MPI. */
  readonly mpirun?: string;
  /** More for mpirun or srun, before the command. */
  readonly starterArguments: readonly string[];
  /** Working folder on all hosts; absent: the launcher's. */
  readonly directory?: string;
  /** Addresses and port of the launcher, for processes that others start. */
  readonly control?: string;
}

/** One process to start on this host. */
export interface ProcessPlan {
  /** Number among those of its role. */
  readonly index: number;
  /** Absent for what starts the job's processes in its stead, `mpirun` for example. */
  readonly role?: Role;
  /** What the process is called in output tags: `0` for worker 0, `s0` for server 0. */
  readonly label: string;
  readonly command: Command;
  /** Added to the launcher's own environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The cores it is bound to; all where absent. */
  readonly cores?: readonly number[];
  /** Open descriptors of ours, above 2, that it gets under their numbers. */
  readonly inherited?: readonly number[];
}

/** A way to place a job's processes. Registered in launchers.ts. */
export interface Launcher {
  readonly name: string;
  /** Whether it starts something that starts the job's processes, on this host or others. */
  readonly remote?: boolean;
  /** Whether it must be told the hosts. */
  readonly needsHosts?: boolean;
  /** The processes to start, in rank order; `jobId` is the secret that those of the job recognise each other by. */
  plan(job: JobSpec, jobId: string): readonly ProcessPlan[];
}

/** The variable every process of a job carries; its value is the job's secret. */
export const jobVariable = 'GRADLINK_JOB';

/** The launcher's addresses and port, `10.0.0.1,192.168.1.5:40123`, in processes that mpirun or srun started. */
export const launcherVariable = 'GRADLINK_LAUNCHER';

/** Variables that the launcher sets, each in some process at least; a job cannot be given others' values. */
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

/** What the user has set for every process. */
export function variablesOf({
  outerEnv,
  env,
}: Pick<JobSpec, 'outerEnv' | 'env'>): Readonly<Record<string, string | undefined>> {
  return { ...outerEnv, ...env };
}

/** What every process of a job is told about it. */
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
      : { [launcherVariable]: job.control, ...toldToKeepers(job.roleEnv) }),
    // For keepers; here the launcher binds.
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
