// Which job this process belongs to, as its launcher told it through the environment.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { GradlinkError, describe } from '../../errors.js';

/** What ranks on several hosts meet over. */
export type Transport = 'mpi' | 'tcp';

/** This process's place in its job. */
export interface JobPlace {
  /** What only processes of the job share. */
  readonly job: string;
  /** Among the job's workers; servers have places of their own. */
  readonly rank: number;
  readonly size: number;
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

type Env = Readonly<Record<string, string | undefined>>;

interface Source {
  readonly launcher: string;
  readonly rank: string;
  readonly size: string;
  /** Ranks of this host; a job is of one host when it equals the size. */
  readonly localSize?: string;
  readonly localRank?: string;
  /** It starts no MPI processes. */
  readonly withoutMpi?: boolean;
  /** Further variables that must be there for the source to count. */
  readonly needs?: readonly string[];
  job(env: Env): string;
}

const first = (env: Env, names: readonly string[]): string =>
  names.map((name) => env[name]).find((value) => value !== undefined && value !== '') ?? '';

// In the order of precedence. A launcher that starts another (mpirun under Slurm) is the outer one: the inner comes
// first.
const sources: readonly Source[] = [
  {
    launcher: 'gradlink launch',
    rank: 'GRADLINK_RANK',
    size: 'GRADLINK_SIZE',
    localRank: 'LOCAL_RANK',
    withoutMpi: true,
    needs: ['GRADLINK_JOB'],
    job: (env) => env['GRADLINK_JOB'] ?? '',
  },
  {
    launcher: 'Open MPI',
    rank: 'OMPI_COMM_WORLD_RANK',
    size: 'OMPI_COMM_WORLD_SIZE',
    localSize: 'OMPI_COMM_WORLD_LOCAL_SIZE',
    localRank: 'OMPI_COMM_WORLD_LOCAL_RANK',
    job: (env) =>
      first(env, ['PMIX_NAMESPACE', 'OMPI_MCA_ess_base_jobid', 'OMPI_MCA_orte_hnp_uri']),
  },
  {
    launcher: 'PMI (MPICH, Intel MPI)',
    rank: 'PMI_RANK',
    size: 'PMI_SIZE',
    localSize: 'MPI_LOCALNRANKS',
    localRank: 'MPI_LOCALRANKID',
    // Hydra gives its processes no name of the job; what they share on a host is its proxy.
    job: (env) => env['PMI_JOBID'] ?? `proxy ${ancestor('hydra_pmi_prox')}`,
  },
  {
    launcher: 'Slurm',
    rank: 'SLURM_PROCID',
    size: 'SLURM_NTASKS',
    localRank: 'SLURM_LOCALID',
    // A batch script itself has SLURM_PROCID too: only a step's tasks know their step.
    needs: ['SLURM_JOB_ID', 'SLURM_STEP_ID'],
    job: (env) => `${env['SLURM_JOB_ID'] ?? ''}.${env['SLURM_STEP_ID'] ?? ''}`,
  },
  {
    launcher: 'torchrun',
    rank: 'RANK',
    size: 'WORLD_SIZE',
    localSize: 'LOCAL_WORLD_SIZE',
    localRank: 'LOCAL_RANK',
    withoutMpi: true,
    needs: ['MASTER_PORT'],
    job: (env) => [env['TORCHELASTIC_RUN_ID'], env['MASTER_ADDR'], env['MASTER_PORT']].join(' '),
  },
];

/**
 * Reads the launcher's variables: `gradlink launch`'s, Open MPI's, PMI's, Slurm's, torchrun's, in this order.
 *
 * Where the launcher says GRADLINK_TRANSPORT=mpi, the first GRADLINK_NUM_WORKERS processes of the MPI job are workers.
 * Ranks of several hosts that are no MPI job meet at MASTER_ADDR:MASTER_PORT.
 *
 * @returns undefined when no launcher started this process.
 * @throws GradlinkError ERR_UNSUPPORTED for ranks on several hosts that have nothing to meet over, and for a server: its process
 *   is no rank of the workers.
 */
export function readJob(env: Env = process.env): JobPlace | undefined {
  const source = sources.find((one) =>
    [one.rank, one.size, ...(one.needs ?? [])].every((name) => (env[name] ?? '') !== ''),
  );
  if (source === undefined) return undefined;
  const all = variable(env, source.size, 1, 2 ** 16);
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
  if (rank >= size) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `process ${rank} of this job is one of its servers: only its ${size} workers are ranks of a communicator`,
    );
  }
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

function readMaster(env: Env): JobPlace['master'] {
  const address = env['MASTER_ADDR'] ?? '';
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

export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || address.startsWith('127.');
}

function localRankOf(env: Env, source: Source, size: number): { localRank?: number } {
  const name = source.localRank;
  if (name === undefined || (env[name] ?? '') === '') return {};
  return { localRank: variable(env, name, 0, size - 1) };
}

function variable(env: Env, name: string, low: number, high: number): number {
  const text = env[name] ?? '';
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < low || value > high) {
    const message = `expected an integer from ${low} to ${high} in the environment variable ${name}, got ${describe(text)}`;
    throw Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' as const });
  }
  return value;
}

function hasSeveralHosts(env: Env, source: Source, size: number): boolean {
  if (source.launcher === 'Slurm') {
    return Number(env['SLURM_STEP_NUM_NODES'] ?? env['SLURM_NNODES'] ?? '1') > 1;
  }
  const local = source.localSize === undefined ? '' : (env[source.localSize] ?? '');
  return local !== '' && Number(local) < size;
}

/** The nearest ancestor process whose name begins so; the parent when there is none. */
function ancestor(name: string): number {
  let pid = process.ppid;
  while (pid > 1) {
    // "PID (NAME) STATE PPID ...": the name may hold blanks and parentheses itself.
    const parts = /^\d+ \((.*)\) \S (\d+)/s.exec(readStat(pid));
    if (parts === null) break;
    if (parts[1]?.startsWith(name)) return pid;
    pid = Number(parts[2]);
  }
  return process.ppid;
}

function readStat(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return '';
  }
}
