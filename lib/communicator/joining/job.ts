// Which job this process belongs to, as its launcher told it through the environment.
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';

import { GradlinkError, argumentError } from '../../errors.js';
import { isLoopback } from '../../network.js';
import { first, isSet, mostRanks, sourceOf, variable, type Env, type Source } from './sources.js';

/** What ranks on several hosts meet over. */
export type Transport = 'mpi' | 'tcp';

/** This process's place in its job. */
export interface JobPlace {
  /** What only processes of the job share. */
  readonly job: string;
  /** Among the job's workers; servers have places of their own. */
  readonly rank: number;
  readonly size: number;
  /** Processes that keep stores; over TCP they meet with the workers, and are the ranks behind them. */
  readonly servers: number;
  /** Who said so, for messages. */
  readonly launcher: string;
  /** What the ranks meet over when nothing else is said: on several hosts what crosses them, or what the launcher says. */
  readonly backend: 'shm' | Transport;
  /** What would cross hosts here. */
  readonly transport?: Transport;
  /** False also where nobody says. */
  readonly severalHosts: boolean;
  /** Among the processes of its host, where the launcher says. */
  readonly localRank?: number;
  /** Whether its processes are an MPI job, and how many of that are workers: ranks 0 to size - 1. */
  readonly mpi?: { readonly size: number };
  /** Where rank 0 listens, for ranks that meet without MPI. */
  readonly master?: { readonly address: string; readonly port: number };
}

/**
 * Reads the launcher's variables: `gradlink launch`'s, Open MPI's, PMI's, Slurm's, torchrun's, in this order. `torchrun`'s
 * come before those of MPI and Slurm where it has surely started this process: they tell of what started it.
 *
 * Where the launcher says GRADLINK_TRANSPORT=mpi, the first GRADLINK_NUM_WORKERS processes of the MPI job are workers.
 * Ranks of several hosts that are no MPI job meet at MASTER_ADDR:MASTER_PORT.
 *
 * @returns undefined when no launcher started this process.
 * @throws GradlinkError ERR_UNSUPPORTED where the variables tell of several ranks, but not all that a rank must know; for ranks on
 *   several hosts that have nothing to meet over; and for a server: its process is no rank of the workers.
 */
export function readJob(env: Env = process.env): JobPlace | undefined {
  const source = sourceOf(env);
  if (source === undefined) {
    if (env['GRADLINK_ROLE'] !== 'server' || !isSet(env, 'GRADLINK_JOB')) return undefined;
    throw ofServers('this process', Number(env['GRADLINK_NUM_WORKERS']));
  }
  const all = variable(env, source.size, 1, mostRanks);
  const rank = variable(env, source.rank, 0, all - 1);
  const { launcher, withoutMpi = false } = source;
  const severalHosts = hasSeveralHosts(env, source, all);
  const master = readMaster(env);
  const asked = env['GRADLINK_TRANSPORT'];
  const transport = transportOf(env, withoutMpi, master !== undefined);
  if (severalHosts && transport === undefined) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `this ${launcher} job has ranks on more than one host, which meet over MPI, or at MASTER_ADDR:MASTER_PORT: start it ` +
        'with mpirun, srun or `gradlink launch -H`, or set these two',
    );
  }
  const overMpi = env['GRADLINK_TRANSPORT'] === 'mpi' && !withoutMpi;
  const elsewhere = source.launcher === 'torchrun' && mayBeElsewhere(env, source, master);
  const size =
    overMpi && (env['GRADLINK_NUM_WORKERS'] ?? '') !== ''
      ? variable(env, 'GRADLINK_NUM_WORKERS', 1, all)
      : all;
  if (rank >= size) throw ofServers(`process ${rank}`, size);
  if (transport === 'tcp' && master !== undefined) checkAddress(master.address);
  // The launcher's text may be a port or a path: a digest is short, and tells nothing. What mpirun and srun give may be
  // guessed by other users of the host; the secret of a `gradlink launch` around them is not.
  const job = createHash('sha256')
    .update(`${launcher} ${source.job(env)} ${env['GRADLINK_JOB'] ?? ''}`)
    .digest('hex')
    .slice(0, 32);
  return {
    job,
    rank,
    size,
    servers: isSet(env, serversVariable) ? variable(env, serversVariable, 0, mostRanks) : 0,
    launcher,
    severalHosts: severalHosts || elsewhere,
    backend:
      (overMpi || asked === 'tcp' || severalHosts || elsewhere ? transport : undefined) ?? 'shm',
    ...(transport === undefined ? {} : { transport }),
    ...localRankOf(env, source, all),
    ...(withoutMpi ? {} : { mpi: { size: all } }),
    ...(master === undefined ? {} : { master }),
  };
}

const serversVariable = 'GRADLINK_NUM_SERVERS';

/**
 * By what a job's workers and servers know one another: servers know nothing of the workers' launcher.
 *
 * @throws GradlinkError ERR_UNSUPPORTED where the user's part of it is missing
 */
export function secretWithServers({ launcher, servers }: JobPlace, env: Env = process.env): string {
  const secret = env['GRADLINK_JOB'] ?? '';
  if (secret !== '') return secret;
  throw new GradlinkError(
    'ERR_UNSUPPORTED',
    `this ${launcher} job has ${servers === 1 ? 'a server' : `${servers} servers`} (${serversVariable}), and workers and servers know ` +
      'one another by GRADLINK_JOB alone: set it to a text that is secret, the same on all of them ' +
      '(openssl rand -hex 16 makes one)',
    { usable: true },
  );
}

function ofServers(who: string, workers: number): GradlinkError {
  return new GradlinkError(
    'ERR_UNSUPPORTED',
    `${who} of this job is one of its servers: only its ${workers} workers are ranks of a communicator`,
  );
}

/** Ranks that wait for a name to become known would wait for this one until their deadline. */
export function checkAddress(address: string): void {
  if (isIP(address) !== 0) return;
  if (/^[^\s/:?#@[\]]+$/.test(address) && URL.canParse(`http://${address}/`)) return;
  const expected = "a name or an address of rank 0's host, without a port";
  throw argumentError('ERR_INVALID_ARG_VALUE', 'MASTER_ADDR', expected, address);
}

export function readMaster(env: Env): JobPlace['master'] {
  // As hostfiles and URLs have addresses of IPv6.
  const address = (env['MASTER_ADDR'] ?? '').replace(/^\[(.+)\]$/, '$1');
  if (address === '' || (env['MASTER_PORT'] ?? '') === '') return undefined;
  // There torchrun's own store listens at the port.
  const taken = env['TORCHELASTIC_USE_AGENT_STORE'] === 'True' ? 1 : 0;
  return { address, port: variable(env, 'MASTER_PORT', 1, 65_535 - taken) + taken };
}

/** MPI where the processes are an MPI job: srun's may be none. */
function transportOf(env: Env, withoutMpi: boolean, hasMaster: boolean): Transport | undefined {
  const asked = env['GRADLINK_TRANSPORT'] ?? '';
  if (asked === 'tcp') return 'tcp';
  const fromSrun = (env['SLURM_PROCID'] ?? '') !== '' && first(env, mpiRanks) === '';
  if (!withoutMpi && !(fromSrun && hasMaster)) return 'mpi';
  return hasMaster ? 'tcp' : undefined;
}

const mpiRanks = ['OMPI_COMM_WORLD_RANK', 'PMI_RANK', 'PMIX_RANK'];

/** Whoever starts ranks by hand, as Kubernetes does, may not say how many of them share a host. */
function mayBeElsewhere(env: Env, source: Source, master: JobPlace['master']): boolean {
  const said = source.localSize !== undefined && (env[source.localSize] ?? '') !== '';
  return !said && master !== undefined && !isLoopback(master.address);
}

function localRankOf(env: Env, source: Source, size: number): { localRank?: number } {
  const name = source.localRank;
  if (name === undefined || (env[name] ?? '') === '') return {};
  return { localRank: variable(env, name, 0, size - 1) };
}

function hasSeveralHosts(env: Env, source: Source, size: number): boolean {
  const count = (name: string) =>
    isSet(env, name) ? variable(env, name, 1, mostRanks) : undefined;
  if (source.launcher === 'Slurm') {
    return (count('SLURM_STEP_NUM_NODES') ?? count('SLURM_NNODES') ?? 1) > 1;
  }
  const local = source.localSize === undefined ? undefined : count(source.localSize);
  return local !== undefined && local < size;
}
