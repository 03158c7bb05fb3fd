// The limit of a store's time: the bytes to move, and the rate of memory or links.
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

/** The limit in a case. */
export type StoreLimit = Pick<CaseInput, 'copyBytesPerSecond' | 'expected'> & {
  readonly context: Pick<
    NonNullable<CaseInput['context']>,
    'threads' | 'availableCores' | 'lastLevelCacheBytes' | 'onGpus'
  >;
  /** For CPU devices, by size. */
  readonly sized?: SizedLimit;
  /** Traffic between workers; absent if there is none or its limit is unknown. */
  readonly between?: Between;
};

/** By the store's type and its volume. */
export type StoreLimits = (kvStore: string, volume: Volume, peer: boolean) => StoreLimit;

/** For stores whose workers sum each other's arrays; servers' arrays are accessible to both. */
const isSummed = (kvStore: string): boolean => parseStoreType(kvStore).kind === 'allreduce';

/** For CPU devices: measures the copy bandwidth of all workers' cores, in parallel, and the limit between cores. */
export async function measureHostLimits(
  workers: Pick<StoreJob, 'rank' | 'size' | 'gather' | 'measureCores'>,
  environment: EnvironmentInfo,
  kvStores: readonly string[],
): Promise<StoreLimits> {
  const { lastLevelCacheBytes } = environment;
  // As for the arrays of a run: memory.ts.
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
 * For GPUs: measures copies on a single GPU. Between GPUs and to host memory it uses NVML's facts of the links or,
 * without them, the copies of all GPUs together.
 *
 * @param gpus one per device; may repeat
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

/** Whether a store's values are in host memory, its own or a server's. */
function mergesOnHost(kvStore: string): boolean {
  const { kind } = parseStoreType(kvStore);
  return kind === 'local' || kind.startsWith('dist_');
}

/** The rate per direction of the slowest host link with both directions busy. */
function bothWays(machine: Machine, gpus: readonly number[]): ExpectedRate | undefined {
  return besideOpposite(narrowest(gpus.map((gpu) => hostLimit(machine, gpu))), false);
}

/** All arrays of a GPU go down its link and come back, both at once. */
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
