// The job of this process, from its launcher's environment variables.
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';

import { GradlinkError, argumentError } from '../../errors.js';
import { isLoopback } from '../../network.js';
import { first, isSet, mostRanks, sourceOf, variable, type Env, type Source } from './sources.js';

export type Transport = 'mpi' | 'tcp';

/** This process's rank and job. */
export interface JobPlace {
  /** Known only to the job's processes. */
  readonly job: string;
  /** Among the workers; servers have their own numbers. */
  readonly rank: number;
  readonly size: number;
  /** Number of key-value store servers; over TCP they are the ranks after the workers. */
  readonly servers: number;
  /** The source of this information, for messages. */
  readonly launcher: string;
  /** The default backend: the transport between hosts if there are several, or the launcher's choice. */
  readonly backend: 'shm' | Transport;
  /** The transport between hosts. */
  readonly transport?: Transport;
  /** False also if unknown. */
  readonly severalHosts: boolean;
  /** Among the processes of its host, if known. */
  readonly localRank?: number;
  /** Set if the processes are an MPI job, with the number of workers: ranks 0 to size - 1. */
  readonly mpi?: { readonly size: number };
  /** Where rank 0 listens, for ranks without MPI. */
  readonly master?: { readonly address: string; readonly port: number };
}

/**
 * Reads the launcher's variables: `gradlink launch`'s, Open MPI's, PMI's, Slurm's, torchrun's, in this order.
 * `torchrun`'s come before those of MPI and Slurm if it certainly started this process; theirs then describe its
 * parent.
 *
 * With GRADLINK_TRANSPORT=mpi, the first GRADLINK_NUM_WORKERS processes of the MPI job are workers. Ranks of several
 * hosts outside an MPI job connect at MASTER_ADDR:MASTER_PORT.
 *
 * @returns undefined when no launcher started this process.
 * @throws GradlinkError ERR_UNSUPPORTED if the variables describe several ranks but are incomplete; for ranks on
 *   several hosts without a transport; and for a server, which is not a worker rank.
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
  // The launcher's text may be a port or a path: a digest is short and reveals nothing. Other users of the host may
  // guess what mpirun and srun provide, but not the secret of `gradlink launch` around them.
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
 * The secret shared by a job's workers and servers. Servers do not know the workers' launcher.
 *
 * @throws GradlinkError ERR_UNSUPPORTED if the user's part of it is missing
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

/** Fails early: the other ranks would wait for this one until their deadline. */
export function checkAddress(address: string): void {
  if (isIP(address) !== 0) return;
  if (/^[^\s/:?#@[\]]+$/.test(address) && URL.canParse(`http://${address}/`)) return;
  const expected = "a name or an address of rank 0's host, without a port";
  throw argumentError('ERR_INVALID_ARG_VALUE', 'MASTER_ADDR', expected, address);
}

export function readMaster(env: Env): JobPlace['master'] {
  // IPv6 addresses in brackets, as in hostfiles and URLs.
  const address = (env['MASTER_ADDR'] ?? '').replace(/^\[(.+)\]$/, '$1');
  if (address === '' || (env['MASTER_PORT'] ?? '') === '') return undefined;
  // torchrun's own store listens at the port.
  const taken = env['TORCHELASTIC_USE_AGENT_STORE'] === 'True' ? 1 : 0;
  return { address, port: variable(env, 'MASTER_PORT', 1, 65_535 - taken) + taken };
}

/** MPI if the processes are an MPI job; srun's may not be. */
function transportOf(env: Env, withoutMpi: boolean, hasMaster: boolean): Transport | undefined {
  const asked = env['GRADLINK_TRANSPORT'] ?? '';
  if (asked === 'tcp') return 'tcp';
  const fromSrun = (env['SLURM_PROCID'] ?? '') !== '' && first(env, mpiRanks) === '';
  if (!withoutMpi && !(fromSrun && hasMaster)) return 'mpi';
  return hasMaster ? 'tcp' : undefined;
}

const mpiRanks = ['OMPI_COMM_WORLD_RANK', 'PMI_RANK', 'PMIX_RANK'];

/** Manually started ranks, as in Kubernetes, may not tell how many share a host. */
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
