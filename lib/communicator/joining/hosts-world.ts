// This process's rank in a job over several hosts, over MPI or TCP; over MPI also how the job ends on failure.
import { inspect } from 'node:util';

import { GradlinkError, argumentError } from '../../errors.js';
import { native } from '../../native/load.js';
import type {
  NativeCheck,
  NativeCommunicator,
  NativeTcpOptions,
} from '../../native/communicator.js';
import { isLoopback, loopbackAddress, readNetwork } from '../../network.js';
import { checkAddress, readMaster, secretWithServers, type JobPlace } from './job.js';
import { named } from './roles.js';

/**
 * Joins the workers of the job.
 *
 * @param place - undefined without a launcher: a world of one.
 * @param gpus - of this process's ranks; null for host memory.
 * @param nccl - how ranks over NCCL agree; null: through host memory.
 */
export async function joinMpiWorld(
  place: JobPlace | undefined,
  timeoutMs: number,
  gpus: Int32Array | null,
  nccl: NativeCheck | null = null,
): Promise<NativeCommunicator> {
  if (place !== undefined && place.mpi === undefined) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `backend 'mpi': ${place.launcher} starts no MPI processes; use mpirun, srun --mpi=pmix or ` +
        '`gradlink launch --launcher mpi`',
    );
  }
  const workers = place?.size ?? 1;
  const all = place?.mpi?.size ?? 1;
  const ranks = firstRanks(workers, all);
  endJobOnFailure();
  const joined = await native().NativeCommunicator.joinMpi(
    { name: 'world', ranks, timeoutMs },
    gpus,
    nccl,
  );
  const found = processesOf(joined, workers, nccl !== null);
  if (found === workers) return joined;
  await joined.close();
  throw new GradlinkError(
    'ERR_MISMATCH',
    `${place?.launcher ?? 'no launcher'} says that this job has ${workers} ranks, MPI finds ${found}: the launcher and ` +
      'the MPI library do not match. Use the mpirun of the same MPI, srun --mpi=pmix for Open MPI, ' +
      'or name the other MPI in GRADLINK_MPI',
  );
}

/** The workers among all processes. An empty list means all: without servers, whatever MPI's numbering is. */
function firstRanks(workers: number, all: number): Int32Array {
  return Int32Array.from({ length: workers < all ? workers : 0 }, (_, rank) => rank);
}

/** The number of joined processes, if known: in a GPU world each may hold several ranks. */
function processesOf(joined: NativeCommunicator, workers: number, ofGpus: boolean): number {
  const { size, heldRanks } = joined;
  if (!ofGpus || size < workers) return size;
  return heldRanks.length === size ? 1 : workers;
}

let watching = false;

/** Ends the job on an uncaught error or a nonzero exit status, because the other processes would wait for this one. */
export function endJobOnFailure(): void {
  if (watching) return;
  watching = true;
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    // Another handler decides whether the process continues.
    const handled =
      process.listenerCount('uncaughtException') > 0 ||
      process.hasUncaughtExceptionCaptureCallback();
    if (!handled) native().abortMpiJob(`${origin}: ${inspect(error)}`, 1);
  });
  process.on('exit', (status) => {
    if (status !== 0) {
      native().abortMpiJob(`a process of the job exits with status ${status}`, status & 0xff || 1);
    }
  });
}

/** A process's rank among those connected over TCP. */
interface TcpPlace {
  readonly rank: number;
  /** Including the servers, which come last. */
  readonly size: number;
  readonly secret: string;
  readonly master: JobPlace['master'];
  readonly teller: string;
}

/** The number of servers connected over TCP with this process's workers. */
const serversBehind = ({ backend, servers }: JobPlace): number => (backend === 'tcp' ? servers : 0);

/**
 * Makes this worker use TCP between hosts from now on.
 *
 * @throws GradlinkError ERR_UNSUPPORTED if rank 0's address is unknown, and for a job without a secret whose ranks
 *   other hosts can reach; ERR_INVALID_ARG_VALUE if the process has joined over MPI already, and for a network that
 *   this host is not in.
 */
export function useTcp(place: JobPlace): void {
  const { rank, size, job, launcher, master } = place;
  const servers = serversBehind(place);
  const secret = servers > 0 ? secretWithServers(place) : job;
  meetOverTcp({ rank, size: size + servers, secret, master, teller: `this ${launcher} job` });
}

export function useTcpAsServer(rank: number, size: number, secret: string): void {
  const master = readMaster(process.env);
  if (master !== undefined) checkAddress(master.address);
  meetOverTcp({ rank, size, secret, master, teller: 'the environment of this server' });
}

function meetOverTcp({ rank, size, secret, master, teller }: TcpPlace): void {
  if (master === undefined && size > 1) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `backend 'tcp': ranks meet where rank 0 listens, and ${teller} does not say where: set MASTER_ADDR ` +
        "to a name or an address of rank 0's host and MASTER_PORT to a free port there, the same on all ranks",
    );
  }
  const { address, port } = master ?? { address: loopbackAddress, port: 0 };
  if (size > 1 && !isLoopback(address)) requireSecret(teller, address);
  native().useTcp({
    rank,
    size,
    address,
    port,
    ...ownNetwork(address),
    secret,
    sealsAll: sealsAll(),
    keepAliveSeconds: keepAliveSeconds(),
  });
}

/** @param master rank 0's address: if it is loopback, ranks stay there in spite of a chosen network */
function ownNetwork(master: string): Pick<NativeTcpOptions, 'own' | 'firstPort' | 'lastPort'> {
  const { chosen, ports = { first: 0, last: 0 } } = readNetwork();
  const followsWay = chosen === undefined || (isLoopback(master) && !isLoopback(chosen.address));
  const own = followsWay ? '' : chosen.address;
  return { own, firstPort: ports.first, lastPort: ports.last };
}

/** Launcher variables other than the secret can be guessed by anyone who reaches the ranks' ports. */
function requireSecret(teller: string, address: string, env = process.env): void {
  if ((env['GRADLINK_JOB'] ?? '') !== '') return;
  const wanted =
    'set GRADLINK_JOB to a text that is secret, the same on all ranks (openssl rand -hex 16 makes one)';
  if (env['GRADLINK_INSECURE'] !== '1') {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `${teller} has no secret, and MASTER_ADDR (${address}) is not a loopback address: whoever reaches the ports ` +
        `of its ranks could take part; ${wanted}. GRADLINK_INSECURE=1 goes on without, on the job's own network`,
    );
  }
  process.emitWarning(`whoever reaches the ports of this job's ranks can take part; ${wanted}`, {
    type: 'GradlinkWarning',
    code: 'GRADLINK_INSECURE',
  });
}

function sealsAll(env = process.env): boolean {
  const asked = env['GRADLINK_TCP_SEAL'] ?? '';
  if (asked === '' || asked === 'short' || asked === 'all') return asked === 'all';
  throw argumentError(
    'ERR_INVALID_ARG_VALUE',
    'GRADLINK_TCP_SEAL',
    "'short', or 'all' for payloads of any length",
    asked,
  );
}

/** Linux's maximum. */
const mostKeepAlive = 32_767;

function keepAliveSeconds(env = process.env): number {
  const name = 'GRADLINK_TCP_KEEPALIVE';
  const asked = env[name] ?? '';
  if (asked === '') return 30;
  if (/^\d+$/.test(asked) && Number(asked) <= mostKeepAlive) return Number(asked);
  throw argumentError(
    'ERR_OUT_OF_RANGE',
    name,
    `seconds from 0 (never) to ${mostKeepAlive}`,
    asked,
  );
}

const alone: JobPlace = {
  job: '',
  rank: 0,
  size: 1,
  servers: 0,
  launcher: '',
  backend: 'tcp',
  severalHosts: false,
};

export async function joinTcpWorld(
  place: JobPlace = alone,
  timeoutMs: number,
  gpus: Int32Array | null,
  nccl: NativeCheck | null = null,
): Promise<NativeCommunicator> {
  useTcp(place);
  const { size: workers } = place;
  const servers = serversBehind(place);
  const ranks = firstRanks(workers, workers + servers);
  try {
    return await native().NativeCommunicator.joinMpi(
      { name: 'world', ranks, timeoutMs },
      gpus,
      nccl,
    );
  } catch (error) {
    throw named(error, { workers, servers });
  }
}
