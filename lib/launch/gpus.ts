// Assigns a GPU to each rank. TensorFlow reserves the memory of every visible GPU, and tfjs-node computes on the last
// one, so each rank must see one. Nothing here loads the CUDA driver: CUDA_VISIBLE_DEVICES is read only when it loads.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { countIn, launcherVariables } from './keeper-place.js';

type Env = Readonly<Record<string, string | undefined>>;

export interface LocalPlace {
  readonly localRank: number;
  /** Absent if the launcher does not tell. */
  readonly localSize?: number;
}

/** The GPUs assigned to a rank. */
export interface GpuShare {
  /** As CUDA_VISIBLE_DEVICES names them: a number, an id such as `GPU-8f2e…`, or several with commas. */
  readonly gpu: string;
  /** Number of GPUs that the ranks of the host share. */
  readonly gpus: number;
  /** Number of local ranks that compute on these GPUs; 1 if unknown. */
  readonly ranks: number;
}

export const visibleVariable = 'CUDA_VISIBLE_DEVICES';
const orderVariable = 'CUDA_DEVICE_ORDER';
const growthVariable = 'TF_FORCE_GPU_ALLOW_GROWTH';
/**
 * Set by `gradlink launch --gpus-per-worker`, as `GPU+GPU,GPUS,RANKS`: the visible GPUs already are this rank's share.
 */
export const ownGpuVariable = 'GRADLINK_OWN_GPU';

/** Passes `gradlink launch --gpus-per-worker COUNT` to keepers. */
export const gpuPerWorkerVariable = 'GRADLINK_GPU_PER_WORKER';

const places = [
  ['GRADLINK_LOCAL_RANK', 'GRADLINK_LOCAL_SIZE'],
  ...launcherVariables.map(([, rank, size]) => [rank, size] as const),
  ['LOCAL_RANK', 'LOCAL_WORLD_SIZE'],
] as const;

/** @returns undefined outside a launcher */
export function localPlace(env: Env): LocalPlace | undefined {
  for (const [rank, size] of places) {
    const localRank = countIn(env[rank]);
    if (localRank === undefined) continue;
    const localSize = countIn(env[size]);
    return { localRank, ...(localSize === undefined ? {} : { localSize }) };
  }
  return undefined;
}

/** @param root of the file system, for tests */
export function installedGpus(root = '/'): number {
  const driver = join(root, 'proc/driver/nvidia/gpus');
  if (existsSync(driver)) return readdirSync(driver).length;
  // Some containers have only the device files.
  const devices = join(root, 'dev');
  return existsSync(devices)
    ? readdirSync(devices).filter((name) => /^nvidia\d+$/.test(name)).length
    : 0;
}

/** The GPUs that this process would see, in the syntax of CUDA_VISIBLE_DEVICES. */
export function visibleGpus(env: Env, root?: string): readonly string[] {
  const list = env[visibleVariable];
  if (list === undefined) return Array.from({ length: installedGpus(root) }, (_, gpu) => `${gpu}`);
  const entries = list.split(',').map((entry) => entry.trim());
  // CUDA ignores everything from the first invalid entry on.
  const end = entries.findIndex((entry) => !/^(\d+|GPU-.+|MIG-.+)$/.test(entry));
  return end < 0 ? entries : entries.slice(0, end);
}

/**
 * The share of one rank; undefined without GPUs.
 *
 * @param each GPUs per rank; a host with fewer gives all
 */
export function gpuShare(
  { localRank, localSize }: LocalPlace,
  gpus: readonly string[],
  each = 1,
): GpuShare | undefined {
  if (gpus.length === 0) return undefined;
  const shares = Math.max(Math.floor(gpus.length / each), 1);
  const at = localRank % shares;
  const ranks = localSize === undefined ? 1 : Math.ceil((localSize - at) / shares);
  const own = gpus.slice(at * each, (at + 1) * each);
  return { gpu: own.join(','), gpus: gpus.length, ranks: Math.max(ranks, 1) };
}

/** Slurm can give each task its own GPUs; the task then sees no others. */
function givenBySlurm(env: Env): boolean {
  return (
    (env['SLURM_GPUS_PER_TASK'] ?? '') !== '' || (env['SLURM_TRES_PER_TASK'] ?? '').includes('gpu')
  );
}

/** This process's share: assigned by its launcher, or computed from its local rank. */
export function ownShare(env: Env, root?: string): GpuShare | undefined {
  const [gpu, gpus, ranks] = (env[ownGpuVariable] ?? '').split(',');
  if (gpu !== undefined && gpus !== undefined) {
    return { gpu: gpu.replaceAll('+', ','), gpus: Number(gpus), ranks: Number(ranks) };
  }
  const place = localPlace(env);
  return place === undefined ? undefined : workerShare(place, env, root);
}

/** Lets TensorFlow allocate GPU memory as needed, unless the user has set it otherwise. */
export function growthVariables(env: Env): Record<string, string> {
  return env[growthVariable] === undefined ? { [growthVariable]: 'true' } : {};
}

export function shareVariables(share: GpuShare, env: Env): Record<string, string> {
  return { [visibleVariable]: share.gpu, ...growthVariables(env) };
}

/** For `gradlink launch --gpus-per-worker`: the share of this worker. Slurm may have assigned one already. */
export function workerShare(
  place: LocalPlace,
  env: Env,
  root?: string,
  each?: number,
): GpuShare | undefined {
  return gpuShare(givenBySlurm(env) ? { localRank: 0 } : place, visibleGpus(env, root), each);
}

export function workerVariables(share: GpuShare | undefined, env: Env): Record<string, string> {
  if (share === undefined) return {};
  const { gpu, gpus, ranks } = share;
  return {
    ...shareVariables(share, env),
    // Our ordinals follow the bus, as NVML's do; CUDA's default begins with the fastest GPU.
    ...(env[visibleVariable] === undefined && env[orderVariable] === undefined
      ? { [orderVariable]: 'PCI_BUS_ID' }
      : {}),
    [ownGpuVariable]: `${gpu.replaceAll(',', '+')},${gpus},${ranks}`,
  };
}

/**
 * A warning about GPUs that several ranks share, or about a rank with fewer GPUs than requested; undefined if there is
 * none.
 */
export function sharedText(
  who: string,
  { gpu, gpus, ranks }: GpuShare,
  each = 1,
): string | undefined {
  const has = gpus === 1 ? 'one GPU' : `${gpus} GPUs`;
  if (gpus < each) {
    return `this host has ${has}, and each of its ${who} needs ${each}: ask for fewer (--gpus-per-worker)`;
  }
  if (ranks < 2) return undefined;
  const which = gpu.includes(',') ? `GPUs ${gpu}` : `GPU ${gpu}`;
  const most = each === 1 ? 'it has GPUs' : `${Math.floor(gpus / each)}, for ${each} GPUs each`;
  return `${ranks} ${who} of this host share ${which}: it has ${has}; start no more ${who} on a host than ${most}`;
}

/** Whether the CUDA driver is loaded, when CUDA_VISIBLE_DEVICES no longer has an effect. */
export function driverIsLoaded(maps = '/proc/self/maps'): boolean {
  try {
    return readFileSync(maps, 'utf8').includes('/libcuda.so');
  } catch {
    return false;
  }
}
