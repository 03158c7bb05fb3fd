// Which GPU of its host a rank computes on. TensorFlow reserves the memory of every GPU that it sees, and tfjs-node
// computes on the last of them: ranks of one host must see one each. Nothing here starts the CUDA driver, which reads
// CUDA_VISIBLE_DEVICES only when it starts.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

/** A rank among those of its host. */
export interface LocalPlace {
  readonly localRank: number;
  /** Absent where its launcher does not say. */
  readonly localSize?: number;
}

/** The GPUs that a rank was given; one, unless it asked for more. */
export interface GpuShare {
  /** As CUDA_VISIBLE_DEVICES names them: a number, an id such as `GPU-8f2e…`, or several with commas. */
  readonly gpu: string;
  /** GPUs that the ranks of the host have between them. */
  readonly gpus: number;
  /** Ranks of the host that compute on these; 1 where its launcher does not say how many there are. */
  readonly ranks: number;
}

export const visibleVariable = 'CUDA_VISIBLE_DEVICES';
const orderVariable = 'CUDA_DEVICE_ORDER';
const growthVariable = 'TF_FORCE_GPU_ALLOW_GROWTH';
/** What `gradlink launch --gpus-per-worker` gave, as `GPU+GPU,GPUS,RANKS`: what is visible is this rank's own. */
export const ownGpuVariable = 'GRADLINK_OWN_GPU';

/** Tells keepers of `gradlink launch --gpus-per-worker COUNT`. */
export const gpuPerWorkerVariable = 'GRADLINK_GPU_PER_WORKER';

const places = [
  ['GRADLINK_LOCAL_RANK', 'GRADLINK_LOCAL_SIZE'],
  ['OMPI_COMM_WORLD_LOCAL_RANK', 'OMPI_COMM_WORLD_LOCAL_SIZE'],
  ['MPI_LOCALRANKID', 'MPI_LOCALNRANKS'],
  ['SLURM_LOCALID', 'SLURM_STEP_TASKS_PER_NODE'],
  ['PMIX_LOCAL_RANK', 'PMIX_LOCAL_SIZE'],
  ['LOCAL_RANK', 'LOCAL_WORLD_SIZE'],
] as const;

function count(text: string | undefined): number | undefined {
  // Slurm writes 4(x2) where each of two nodes has 4.
  const [, digits] = /^(\d+)(?:\(x\d+\))?$/.exec(text ?? '') ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** @returns undefined where no launcher says it. */
export function localPlace(env: Env): LocalPlace | undefined {
  for (const [rank, size] of places) {
    const localRank = count(env[rank]);
    if (localRank === undefined) continue;
    const localSize = count(env[size]);
    return { localRank, ...(localSize === undefined ? {} : { localSize }) };
  }
  return undefined;
}

/** @param root of the file system, for tests */
export function installedGpus(root = '/'): number {
  const driver = join(root, 'proc/driver/nvidia/gpus');
  if (existsSync(driver)) return readdirSync(driver).length;
  // Some containers show the devices only.
  const devices = join(root, 'dev');
  return existsSync(devices)
    ? readdirSync(devices).filter((name) => /^nvidia\d+$/.test(name)).length
    : 0;
}

/** The GPUs that this process would see, in the words of CUDA_VISIBLE_DEVICES. */
export function visibleGpus(env: Env, root?: string): readonly string[] {
  const list = env[visibleVariable];
  if (list === undefined) return Array.from({ length: installedGpus(root) }, (_, gpu) => `${gpu}`);
  const entries = list.split(',').map((entry) => entry.trim());
  // CUDA takes those before the first that cannot be.
  const end = entries.findIndex((entry) => !/^(\d+|GPU-.+|MIG-.+)$/.test(entry));
  return end < 0 ? entries : entries.slice(0, end);
}

/**
 * The share of one rank; undefined where there is no GPU.
 *
 * @param each how many GPUs a rank gets; all of them where there are fewer
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

/** Slurm gives each task its own GPUs where it is asked to; these are then all that the task sees. */
function givenBySlurm(env: Env): boolean {
  return (
    (env['SLURM_GPUS_PER_TASK'] ?? '') !== '' || (env['SLURM_TRES_PER_TASK'] ?? '').includes('gpu')
  );
}

/** The share of the process with this environment: what its launcher gave it, or a share by its place. */
export function ownShare(env: Env, root?: string): GpuShare | undefined {
  const [gpu, gpus, ranks] = (env[ownGpuVariable] ?? '').split(',');
  if (gpu !== undefined && gpus !== undefined) {
    return { gpu: gpu.replaceAll('+', ','), gpus: Number(gpus), ranks: Number(ranks) };
  }
  const place = localPlace(env);
  return place === undefined ? undefined : workerShare(place, env, root);
}

/** TensorFlow takes memory as it needs it, unless the user has said otherwise. */
export function growthVariables(env: Env): Record<string, string> {
  return env[growthVariable] === undefined ? { [growthVariable]: 'true' } : {};
}

/** What a process that shall see its share alone is started with. */
export function shareVariables(share: GpuShare, env: Env): Record<string, string> {
  return { [visibleVariable]: share.gpu, ...growthVariables(env) };
}

/** For `gradlink launch --gpus-per-worker`: the share of the worker at this place, who may have been given one by Slurm. */
export function workerShare(
  place: LocalPlace,
  env: Env,
  root?: string,
  each?: number,
): GpuShare | undefined {
  return gpuShare(givenBySlurm(env) ? { localRank: 0 } : place, visibleGpus(env, root), each);
}

/** What a worker with this share is started with. */
export function workerVariables(share: GpuShare | undefined, env: Env): Record<string, string> {
  if (share === undefined) return {};
  const { gpu, gpus, ranks } = share;
  return {
    ...shareVariables(share, env),
    // Numbers of ours follow the bus, as those of NVML do; CUDA would begin with the fastest.
    ...(env[visibleVariable] === undefined && env[orderVariable] === undefined
      ? { [orderVariable]: 'PCI_BUS_ID' }
      : {}),
    [ownGpuVariable]: `${gpu.replaceAll(',', '+')},${gpus},${ranks}`,
  };
}

/**
 * What there is to say of GPUs that several ranks compute on, or of a rank that got fewer than it was to have; undefined
 * where there is nothing.
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

/** Whether this process has loaded the CUDA driver, so that CUDA_VISIBLE_DEVICES would come too late. */
export function driverIsLoaded(maps = '/proc/self/maps'): boolean {
  try {
    return readFileSync(maps, 'utf8').includes('/libcuda.so');
  } catch {
    return false;
  }
}
