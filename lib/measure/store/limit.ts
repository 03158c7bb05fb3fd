// The limit that a store's time stands beside: what must move, against what the memory or the links carry.
import { parseStoreType } from '../../kvstore/types.js';
import type { Volume } from '../../results/bandwidth.js';
import type { CaseInput, ExpectedTime } from '../../results/case.js';
import { collectiveCrossing } from '../../results/crossing.js';
import { measureGpuCopyLimit } from '../machine/gpu-copy-limit.js';
import { gpuSweepLimit } from '../machine/gpu-sweep-limit.js';
import { besideOpposite, hostLimit, narrowest, type ExpectedRate } from '../machine/gpu-rates.js';
import { readMachine, type Machine } from '../machine/gpus.js';
import type { EnvironmentInfo } from '../../results/result.js';
import { measureSharedLimit } from '../machine/shared-limit.js';
import { sizedLimit, type Between, type SizedLimit } from '../machine/sized-limit.js';
import type { StoreJob } from './job.js';

/** What a case says of its limit. */
export type StoreLimit = Pick<CaseInput, 'copyBytesPerSecond' | 'expected'> & {
  readonly context: Pick<
    NonNullable<CaseInput['context']>,
    'threads' | 'availableCores' | 'lastLevelCacheBytes' | 'onGpus'
  >;
  /** Of CPU devices, by size. */
  readonly sized?: SizedLimit;
  /** What the workers must pass to one another; absent where nothing passes, or nobody measured how fast it can. */
  readonly between?: Between;
};

/** By the type of the store and what it moves. */
export type StoreLimits = (kvStore: string, volume: Volume, peer: boolean) => StoreLimit;

/** Of the stores whose workers sum one another's arrays: those of servers lie where both reach them. */
const isSummed = (kvStore: string): boolean => parseStoreType(kvStore).kind === 'allreduce';

/**
 * Of CPU devices: the copy bandwidth of the cores of all workers, measured now, by all of them at the same time, and
 * what these cores pass to one another.
 */
export async function measureHostLimits(
  workers: Pick<StoreJob, 'rank' | 'size' | 'gather' | 'measureCores'>,
  environment: EnvironmentInfo,
  kvStores: readonly string[],
): Promise<StoreLimits> {
  const { lastLevelCacheBytes } = environment;
  // As the arrays of a run: memory.ts.
  const hugePages = true;
  const shared = await measureSharedLimit(workers, lastLevelCacheBytes, undefined, hugePages);
  const { copyBytesPerSecond, threads, availableCores } = shared;
  const limit: StoreLimit = {
    copyBytesPerSecond,
    expected: undefined,
    context: { threads, availableCores, lastLevelCacheBytes },
    sized: sizedLimit(workers, shared, lastLevelCacheBytes, hugePages),
  };
  const cores = kvStores.some(isSummed) ? await workers.measureCores?.(availableCores) : undefined;
  return (kvStore, { bytes }) =>
    cores === undefined || !isSummed(kvStore)
      ? limit
      : {
          ...limit,
          between: { cores, crossing: collectiveCrossing('all_reduce', bytes, workers.size) },
        };
}

/**
 * Of GPUs: on one GPU its own copies, measured now; between GPUs, and to the host's memory, what NVML says of the links,
 * or where it says nothing the copies of all GPUs together.
 *
 * @param gpus one for each device; may repeat
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver
 */
export async function measureGpuLimits(gpus: readonly number[]): Promise<StoreLimits> {
  const distinct = [...new Set(gpus)];
  const machine = readMachine(distinct);
  let copyBytesPerSecond = 0;
  for (const gpu of distinct) {
    copyBytesPerSecond += (await measureGpuCopyLimit(gpu)).copyBytesPerSecond;
  }
  const caches = machine.gpus.map(({ l2Bytes }) => l2Bytes).reduce((sum, bytes) => sum + bytes, 0);
  return (kvStore, volume, peer) => ({
    copyBytesPerSecond,
    expected: mergesOnHost(kvStore)
      ? throughHost(machine, gpus, volume)
      : betweenGpus(machine, distinct, volume, peer),
    context: { lastLevelCacheBytes: caches === 0 ? null : caches, onGpus: true },
  });
}

/** Whether a store's values lie in the memory of a host, its own or a server's. */
function mergesOnHost(kvStore: string): boolean {
  const { kind } = parseStoreType(kvStore);
  return kind === 'local' || kind.startsWith('dist_');
}

/** What each direction of the slowest of the GPUs' links to the host keeps while both are used. */
function bothWays(machine: Machine, gpus: readonly number[]): ExpectedRate | undefined {
  return besideOpposite(narrowest(gpus.map((gpu) => hostLimit(machine, gpu))), false);
}

/** All arrays of a GPU go down its link, and come up, both at a time. */
function throughHost(
  machine: Machine,
  gpus: readonly number[],
  { bytes }: Volume,
): ExpectedTime | undefined {
  const distinct = [...new Set(gpus)];
  const rate = bothWays(machine, distinct);
  if (rate === undefined) return undefined;
  const most = Math.max(...distinct.map((gpu) => gpus.filter((one) => one === gpu).length));
  return {
    bytes: most * bytes,
    bytesPerSecond: rate.bytesPerSecond,
    formula: `${most === 1 ? '' : `${most} `}S down each GPU's link while as much comes up`,
    basis: rate.basis,
  };
}

/** As in an all-reduce between the distinct GPUs. */
function betweenGpus(
  machine: Machine,
  distinct: readonly number[],
  { bytes }: Volume,
  peer: boolean,
): ExpectedTime | undefined {
  const rate = peer ? gpuSweepLimit(machine, distinct).rate : bothWays(machine, distinct);
  if (distinct.length === 1 || rate === undefined) return undefined;
  const n = distinct.length;
  return {
    bytes: (bytes * 2 * (n - 1)) / n,
    bytesPerSecond: rate.bytesPerSecond,
    formula: `S 2(n-1)/n, what each of n = ${n} GPUs must ${peer ? 'send' : "receive over the host's link"}`,
    basis: rate.basis,
  };
}
