// This process's rank among the workers and servers of its job.
import { readJob, secretWithServers } from '../communicator/joining/job.js';
import { isSet, mostRanks, variable, type Env } from '../communicator/joining/sources.js';
import { GradlinkError } from '../errors.js';

/** Where the processes of a job's stores connect, and this one's rank: workers first, then servers. */
export interface StorePlace {
  readonly backend: 'shm' | 'mpi' | 'tcp';
  readonly job: string;
  readonly rank: number;
  readonly workers: number;
  readonly servers: number;
}

/** A worker's rank; undefined without a launcher. */
export function workerPlace(env: Env = process.env): StorePlace | undefined {
  const place = readJob(env);
  if (place === undefined) return undefined;
  const { backend, rank, size, servers } = place;
  const job = servers > 0 ? secretWithServers(place, env) : place.job;
  return { backend, job, rank, workers: size, servers };
}

const needs = ['GRADLINK_JOB', 'GRADLINK_NUM_WORKERS', 'GRADLINK_NUM_SERVERS'];

/** Why this process is not a server; undefined if it is one. */
export function notServer(env: Env = process.env): string | undefined {
  const missing = needs.filter((name) => !isSet(env, name));
  if (missing.length === 0) return undefined;
  return (
    'this process is not a server of a job: gradlink launch -s starts servers; to start one by hand set ' +
    `${needs.join(', ')} and GRADLINK_SERVER_RANK, of which ${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not set`
  );
}

/** @throws GradlinkError ERR_UNSUPPORTED if this process was not started as a server */
export function serverPlace(env: Env = process.env): StorePlace {
  const reason = notServer(env);
  if (reason !== undefined) throw new GradlinkError('ERR_UNSUPPORTED', reason);
  const workers = variable(env, 'GRADLINK_NUM_WORKERS', 1, mostRanks);
  const servers = variable(env, 'GRADLINK_NUM_SERVERS', 1, mostRanks);
  const number = 'GRADLINK_SERVER_RANK';
  const server = servers > 1 || isSet(env, number) ? variable(env, number, 0, servers - 1) : 0;
  const transport = env['GRADLINK_TRANSPORT'];
  const backend = transport === 'mpi' || transport === 'tcp' ? transport : 'shm';
  return { backend, job: env['GRADLINK_JOB'] ?? '', rank: workers + server, workers, servers };
}
