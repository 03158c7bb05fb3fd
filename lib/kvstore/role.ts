// This process's place among the workers and servers of its job.
import { readJob } from '../communicator/joining/job.js';
import { GradlinkError, describe } from '../errors.js';

type Env = Readonly<Record<string, string | undefined>>;

/** Where the processes of a job's stores meet, and which this one is: workers come first, then servers. */
export interface StorePlace {
  readonly backend: 'shm' | 'mpi' | 'tcp';
  readonly job: string;
  readonly rank: number;
  readonly workers: number;
  readonly servers: number;
}

const maxProcesses = 2 ** 16;

/** A worker's place; undefined where no launcher started this process. */
export function workerPlace(env: Env = process.env): StorePlace | undefined {
  const job = readJob(env);
  if (job === undefined) return undefined;
  const { backend, rank, size } = job;
  const servers = count(env, 'GRADLINK_NUM_SERVERS', 0, 0);
  // Servers know only the launcher's secret.
  return { backend, job: servers > 0 ? secret(env) : job.job, rank, workers: size, servers };
}

/** @throws GradlinkError ERR_UNSUPPORTED where no launcher started this process as a server. */
export function serverPlace(env: Env = process.env): StorePlace {
  const job = secret(env);
  const workers = count(env, 'GRADLINK_NUM_WORKERS', 1, 0);
  const servers = count(env, 'GRADLINK_NUM_SERVERS', 1, 0);
  if (job === '' || workers === 0 || servers === 0) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      'this process is not a server of a job: servers are started by gradlink launch -s',
    );
  }
  const server = count(env, 'GRADLINK_SERVER_RANK', 0, 0);
  const backend = env['GRADLINK_TRANSPORT'] === 'mpi' ? 'mpi' : 'shm';
  return { backend, job, rank: workers + server, workers, servers };
}

function secret(env: Env): string {
  return env['GRADLINK_JOB'] ?? '';
}

function count(env: Env, name: string, low: number, fallback: number): number {
  const text = env[name] ?? '';
  if (text === '') return fallback;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < low || value > maxProcesses) {
    const message = `expected an integer from ${low} to ${maxProcesses} in the environment variable ${name}, got ${describe(text)}`;
    throw Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' as const });
  }
  return value;
}
