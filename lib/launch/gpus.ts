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

/** The GPU that a rank was given. */
export interface GpuShare {
  /** As CUDA_VISIBLE_DEVICES names it: a number, or an id such as `GPU-8f2e…`. */
  readonly gpu: string;
  /** GPUs that the ranks of the host have between them. */
  readonly gpus: number;
  /** Ranks of the host that compute on this one; 1 where its launcher does not say how many there are. */
  readonly ranks: number;
}

export const visibleVariable = 'CUDA_VISIBLE_DEVICES';
const growthVariable = 'TF_FORCE_GPU_ALLOW_GROWTH';
/** What `gradlink launch --gpu-per-worker` gave, as `GPU,GPUS,RANKS`: what is visible is this rank's own. */
export const ownGpuVariable = 'GRADLINK_OWN_GPU';

/** Tells keepers of `gradlink launch --gpu-per-worker`. */
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

/** The share of one rank; undefined where there is no GPU. */
export function gpuShare(
  { localRank, localSize }: LocalPlace,
  gpus: readonly string[],
): GpuShare | undefined {
  const at = localRank % gpus.length;
  const gpu = gpus[at];
  if (gpu === undefined) return undefined;
  const ranks = localSize === undefined ? 1 : Math.ceil((localSize - at) / gpus.length);
  return { gpu, gpus: gpus.length, ranks: Math.max(ranks, 1) };
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
    return { gpu, gpus: Number(gpus), ranks: Number(ranks) };
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

/** For `gradlink launch --gpu-per-worker`: the share of the worker at this place, who may have been given one by Slurm. */
export function workerShare(place: LocalPlace, env: Env, root?: string): GpuShare | undefined {
  return gpuShare(givenBySlurm(env) ? { localRank: 0 } : place, visibleGpus(env, root));
}

/** What a worker with this share is started with. */
export function workerVariables(share: GpuShare | undefined, env: Env): Record<string, string> {
  if (share === undefined) return {};
  const { gpu, gpus, ranks } = share;
  return { ...shareVariables(share, env), [ownGpuVariable]: `${gpu},${gpus},${ranks}` };
}

/** What there is to say of a GPU that several ranks compute on; undefined where one does. */
export function sharedText(who: string, { gpu, gpus, ranks }: GpuShare): string | undefined {
  if (ranks < 2) return undefined;
  const has = gpus === 1 ? 'one GPU' : `${gpus} GPUs`;
  return `${ranks} ${who} of this host share GPU ${gpu}: it has ${has}; start no more ${who} on a host than it has GPUs`;
}

/** Whether this process has loaded the CUDA driver, so that CUDA_VISIBLE_DEVICES would come too late. */
export function driverIsLoaded(maps = '/proc/self/maps'): boolean {
  try {
    return readFileSync(maps, 'utf8').includes('/libcuda.so');
  } catch {
    return false;
  }
}
