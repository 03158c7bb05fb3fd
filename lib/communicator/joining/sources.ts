// The supported launchers and their variables, which one started this process, and incomplete variables.
import { readFileSync } from 'node:fs';

import { GradlinkError, describe } from '../../errors.js';

export type Env = Readonly<Record<string, string | undefined>>;

/** A launcher's variable names. */
export interface Source {
  readonly launcher: string;
  readonly rank: string;
  readonly size: string;
  /** Ranks of this host; equal to the size in a single-host job. */
  readonly localSize?: string;
  readonly localRank?: string;
  /** It starts no MPI processes. */
  readonly withoutMpi?: boolean;
  /** Further variables that must be set. */
  readonly needs?: readonly string[];
  /** Whether the variables belong to ranks, rather than to an allocation or a standalone program. */
  ofRanks?(env: Env): boolean;
  job(env: Env): string;
}

export const isSet = (env: Env, name: string): boolean => (env[name] ?? '') !== '';

/** The value of the first of these that is set. */
export const first = (env: Env, names: readonly string[]): string =>
  names.map((name) => env[name] ?? '').find((value) => value !== '') ?? '';

/** More ranks than any job has. */
export const mostRanks = 2 ** 16;

/** A variable as a number. @throws RangeError ERR_OUT_OF_RANGE */
export function variable(env: Env, name: string, low: number, high: number): number {
  const text = env[name] ?? '';
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < low || value > high) {
    const message = `expected an integer from ${low} to ${high} in the environment variable ${name}, got ${describe(text)}`;
    throw Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' as const });
  }
  return value;
}

const launch: Source = {
  launcher: 'gradlink launch',
  rank: 'GRADLINK_RANK',
  size: 'GRADLINK_SIZE',
  localRank: 'LOCAL_RANK',
  withoutMpi: true,
  needs: ['GRADLINK_JOB'],
  job: (env) => env['GRADLINK_JOB'] ?? '',
};

/** Slurm's numbers from here on are not steps of ranks: batch scripts, interactive shells. */
const firstReservedStep = 0xffff_fff0;

const slurm: Source = {
  launcher: 'Slurm',
  rank: 'SLURM_PROCID',
  size: 'SLURM_NTASKS',
  localRank: 'SLURM_LOCALID',
  // A batch script also has SLURM_PROCID 0; only a step's tasks have a step.
  needs: ['SLURM_JOB_ID', 'SLURM_STEP_ID'],
  ofRanks: (env) =>
    isSet(env, 'SLURM_STEP_ID')
      ? !(Number(env['SLURM_STEP_ID']) >= firstReservedStep)
      : isSet(env, 'SLURM_PROCID') && env['SLURM_PROCID'] !== '0',
  job: (env) => `${env['SLURM_JOB_ID'] ?? ''}.${env['SLURM_STEP_ID'] ?? ''}`,
};

const masterVariables = ['MASTER_ADDR', 'MASTER_PORT'] as const;

const torchrun: Source = {
  launcher: 'torchrun',
  rank: 'RANK',
  size: 'WORLD_SIZE',
  localSize: 'LOCAL_WORLD_SIZE',
  localRank: 'LOCAL_RANK',
  withoutMpi: true,
  needs: masterVariables,
  // RANK=-1 means a standalone program, and RANK alone is used by many programs.
  ofRanks: (env) =>
    env['RANK'] !== '-1' &&
    (isSet(env, 'WORLD_SIZE') || masterVariables.some((name) => isSet(env, name))),
  job: (env) => [env['TORCHELASTIC_RUN_ID'], ...masterVariables.map((name) => env[name])].join(' '),
};

// In order of precedence. A launcher that starts another (mpirun under Slurm) is the outer one; the inner one comes
// first.
const sources: readonly Source[] = [
  launch,
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
    // Hydra has no job name; its processes on a host share their proxy.
    job: (env) => env['PMI_JOBID'] ?? `proxy ${ancestor('hydra_pmi_prox')}`,
  },
  slurm,
  torchrun,
];

/** Sizes of launchers that are not supported: MVAPICH, horovodrun, jsrun, MXNet, PaddlePaddle. */
const foreignSize =
  /^(?:[A-Z][A-Z0-9]*_COMM_WORLD_SIZE|HOROVOD_SIZE|JSM_NAMESPACE_SIZE|DMLC_NUM_WORKER|PADDLE_TRAINERS_NUM)$/;

const variablesOf = ({ rank, size, needs = [] }: Source): readonly string[] => [
  rank,
  size,
  ...needs,
];

function isWhole(source: Source, env: Env): boolean {
  return variablesOf(source).every((name) => isSet(env, name)) && (source.ofRanks?.(env) ?? true);
}

/** An invalid size such as 0 may be meant as several: an error rather than a world of one. */
const isSeveral = (env: Env, name: string): boolean =>
  isSet(env, name) && variable(env, name, 1, mostRanks) > 1;

const isLater = (env: Env, name: string): boolean =>
  isSet(env, name) && variable(env, name, 0, mostRanks - 1) > 0;

/**
 * The launcher of this process.
 *
 * @returns undefined for a process that runs alone
 * @throws GradlinkError ERR_UNSUPPORTED if variables describe several ranks but are incomplete: each rank would
 *   silently run alone
 * @throws RangeError ERR_OUT_OF_RANGE for a size that is not a positive count, or a rank that is not a number
 */
export function sourceOf(env: Env): Source | undefined {
  const whole = sources.filter((source) => isWhole(source, env));
  const [outer] = whole;
  if (outer === launch) return outer;
  // mpirun or srun may have started torchrun once per host: its children have their variables too.
  const ownRanks = whole.includes(torchrun) && env['GRADLINK_TRANSPORT'] !== 'mpi';
  const inner = ownRanks && isSet(env, 'TORCHELASTIC_RUN_ID');
  const alone = outer !== undefined && !isSeveral(env, outer.size);
  if (inner || (ownRanks && alone && isSeveral(env, torchrun.size))) return torchrun;
  if (outer === undefined) {
    refuseHalves(env, sources);
    // It has no size variable. An MPI joined standalone sets it itself, and marks that.
    const byPmix = isSet(env, 'PMIX_RANK') && env['OMPI_MCA_ess'] !== 'singleton';
    if (byPmix) throw unknown(env, 'PMIX_RANK');
  } else if (alone && outer !== torchrun) refuseHalves(env, [torchrun]);
  return outer;
}

function refuseHalves(env: Env, candidates: readonly Source[]): void {
  for (const source of candidates) {
    const { launcher, rank, size } = source;
    if (source.ofRanks?.(env) === false) continue;
    const teller = [size, rank].find((name) =>
      name === size ? isSeveral(env, name) : isLater(env, name),
    );
    if (teller === undefined) continue;
    const missing = variablesOf(source).filter((name) => !isSet(env, name));
    if (missing.length > 0) throw half(env, teller, `variables of ${launcher}`, missing);
  }
  const foreign = Object.keys(env).find(
    (name) => foreignSize.test(name) && !isOwnSize(name) && isSeveral(env, name),
  );
  if (foreign !== undefined) throw unknown(env, foreign);
}

const isOwnSize = (name: string): boolean => sources.some(({ size }) => size === name);

function half(env: Env, teller: string, whose: string, missing: readonly string[]): GradlinkError {
  const one = missing.length === 1;
  return new GradlinkError(
    'ERR_UNSUPPORTED',
    `${teller}=${env[teller]} says that this process is one of several ranks, but of the ${whose} ${missing.join(', ')} ` +
      `${one ? 'is' : 'are'} not set, so that it would run alone: set ${one ? 'it' : 'them'} on every rank, or unset ${teller} ` +
      'for a program of one rank',
  );
}

function unknown(env: Env, teller: string): GradlinkError {
  return new GradlinkError(
    'ERR_UNSUPPORTED',
    `${teller}=${env[teller]} says that a launcher started this process as one of several ranks, but not how they meet, so that ` +
      `it would run alone: set ${variablesOf(torchrun).join(', ')} on every rank, start them with gradlink launch, mpirun or ` +
      `srun, or unset ${teller} for a program of one rank`,
  );
}

/** The nearest ancestor with this name prefix; the parent if there is none. */
function ancestor(name: string): number {
  let pid = process.ppid;
  while (pid > 1) {
    // "PID (NAME) STATE PPID ...": the name may contain spaces and parentheses.
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
