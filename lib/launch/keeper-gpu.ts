// The GPUs of a worker that mpirun or srun started with --gpus-per-worker, and the cores next to them.
import { shareCores } from './cores.js';
import { shareCoresNear } from './gpu-cores.js';
import { gpuPerWorkerVariable, sharedText, workerShare, workerVariables } from './gpus.js';

type Env = Readonly<Record<string, string | undefined>>;

/** A process among those of its host, as far as known. Workers come before servers. */
export interface KeptPlace {
  readonly localRank?: number | undefined;
  readonly localSize?: number | undefined;
  readonly localWorkers?: number | undefined;
}

export interface KeeperGpu {
  /** For the worker's environment. */
  readonly variables: Readonly<Record<string, string>>;
  /** A warning for the user; only from the first worker on each GPU. */
  readonly warning?: string;
}

/** The number of workers of the host. */
export function workersHere({ localSize, localWorkers }: KeptPlace, env: Env): number | undefined {
  return localWorkers ?? (env.GRADLINK_NUM_SERVERS === '0' ? localSize : undefined);
}

function eachGets(env: Env): number {
  return Number(env[gpuPerWorkerVariable] ?? '0');
}

export function keeperGpu(place: KeptPlace, env: Env): KeeperGpu {
  const { localRank } = place;
  const each = eachGets(env);
  if (!(each > 0) || localRank === undefined) return { variables: {} };
  // If servers are counted too, the number of workers that share is unknown.
  const localSize = workersHere(place, env);
  const here = localSize === undefined ? { localRank } : { localRank, localSize };
  const share = workerShare(here, env, undefined, each);
  if (share === undefined) return { variables: {} };
  const shares = Math.max(Math.floor(share.gpus / each), 1);
  const text = localRank < shares ? sharedText('workers', share, each) : undefined;
  return {
    variables: workerVariables(share, env),
    ...(text === undefined ? {} : { warning: `gradlink launch: ${text}.\n` }),
  };
}

/**
 * The cores of one process of a host.
 *
 * @param root of the file system, for tests
 */
export function keeperCores(
  place: KeptPlace,
  env: Env,
  cores: readonly number[],
  root?: string,
): readonly number[] | undefined {
  const { localRank, localSize } = place;
  if (env.GRADLINK_BIND_TO === 'none' || localRank === undefined) return undefined;
  const each = eachGets(env);
  const workers = workersHere(place, env);
  if (each > 0 && workers !== undefined && localRank < workers) {
    const gpus = Array.from({ length: workers }, (_, rank) => {
      const share = workerShare({ localRank: rank, localSize: workers }, env, root, each);
      return share === undefined ? [] : share.gpu.split(',');
    });
    const near = shareCoresNear(gpus, cores, root);
    if (near !== undefined) return near[localRank];
  }
  return localSize === undefined ? undefined : shareCores(localSize, cores)[localRank];
}
