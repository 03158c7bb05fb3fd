// Opens stores with several workers.
import { readJob } from '../communicator/joining/job.js';
import { endJobOnFailure, useTcp } from '../communicator/joining/hosts-world.js';
import { named } from '../communicator/joining/roles.js';
import { GradlinkError } from '../errors.js';
import { native } from '../native/load.js';
import type { NativePlace } from '../native/dist.js';
import { nativeGpuMerges } from '../native/kvstore.js';
import type { NativeKVStore } from '../native/kvstore.js';
import type { OpeningOptions } from './store-options.js';
import { workerPlace } from './role.js';
import type { StorePlace } from './role.js';
import type { StoreBackend } from './types.js';

// Each store of a job has its own rendezvous name; all workers create their stores in the same order.
let storesWithServers = 0;
let storesWithout = 0;

/** The rendezvous name of the job's n-th store with servers. */
export function rendezvousName(store: number): string {
  return `kvstore ${store}`;
}

/** Stores that are to report a failure if this process exits without closing them. */
const open = new Set<NativeKVStore>();

function onExit(code: number): void {
  if (code !== 0) for (const store of open) store.drop();
}

function track(store: NativeKVStore): NativeKVStore {
  if (open.size === 0) process.on('exit', onExit);
  open.add(store);
  return store;
}

/** Called after close(). */
export function forget(store: NativeKVStore): void {
  if (open.delete(store) && open.size === 0) process.off('exit', onExit);
}

/** The settings of one type of store with servers, and its devices. */
export interface ServedStore {
  readonly type: string;
  readonly asynchronous: boolean;
  readonly devices: number;
  /** One per device; null for CPU devices. */
  readonly gpus: readonly number[] | null;
  /** Whether GPU arrays are summed in host memory. */
  readonly mergeOnHost: boolean;
}

/** A worker's side of a store with servers. */
export async function openWithServers(
  { type, ...store }: ServedStore,
  { timeoutMs, startTimeoutMs, bigArrayBound, merge }: OpeningOptions,
): Promise<StoreBackend> {
  const place = workerPlace();
  if (place === undefined || place.servers === 0) throw withoutServers(type, place);
  const { rank, workers, servers } = place;
  const name = rendezvousName(storesWithServers);
  const meeting = meetingOf(place, name, workers + servers, startTimeoutMs);
  const sums = { merge: mergeOf(merge) };
  const options = { ...store, ...sums, workers, servers, bigArrayBound, timeoutMs };
  const opening = native().NativeKVStore.openDist(meeting, options);
  // A missing GPU was reported at once, but the servers still wait for this store.
  ++storesWithServers;
  try {
    const opened = track(await opening);
    return {
      native: opened,
      rank,
      numWorkers: workers,
      numServers: servers,
      stepsOnGpus: false,
    };
  } catch (error) {
    throw named(error, place);
  }
}

/**
 * A worker's side of a store without servers.
 *
 * @param gpus - one per device; null for CPU devices.
 */
export async function openWithoutServers(
  devices: number,
  gpus: readonly number[] | null,
  { timeoutMs, startTimeoutMs, shardOptimizer = false, merge }: OpeningOptions,
): Promise<StoreBackend> {
  const alone = { backend: 'shm', job: '', rank: 0, workers: 1, servers: 0 } as const;
  const place = workerPlace() ?? alone;
  const { rank, workers } = place;
  const meeting = meetingOf(place, `allreduce ${storesWithout}`, workers, startTimeoutMs);
  const sums = { mergeOnHost: false, merge: mergeOf(merge) };
  const options = { devices, gpus, ...sums, shardOptimizer, timeoutMs };
  const opening = native().NativeKVStore.openAllreduce(meeting, options);
  // A missing GPU was reported at once, but the other workers still wait for this store.
  ++storesWithout;
  const store = track(await opening);
  const stepsOnGpus = gpus !== null && shardOptimizer;
  return { native: store, rank, numWorkers: workers, numServers: 0, stepsOnGpus };
}

/** NCCL only on request, because it adds in its own order. */
function mergeOf(merge: OpeningOptions['merge']): number {
  return merge === 'nccl' ? nativeGpuMerges.nccl : nativeGpuMerges.peer;
}

function meetingOf(
  { backend, job, rank, workers, servers }: StorePlace,
  name: string,
  size: number,
  timeoutMs: number,
): NativePlace {
  if (backend === 'mpi') endJobOnFailure();
  if (backend === 'tcp') useTcp(readJob()!);
  const wholeJob = size === workers + servers;
  return { backend, job, name, rank, size, wholeJob, timeoutMs };
}

function withoutServers(type: string, place: StorePlace | undefined): GradlinkError {
  const alone =
    process.env['DMLC_ROLE'] === undefined
      ? 'no launcher started this process'
      : "no launcher of gradlink started this process (DMLC_ROLE is MXNet's and is ignored)";
  const here =
    place === undefined
      ? alone
      : `this job has ${place.workers === 1 ? 'one worker' : `${place.workers} workers`} and no servers (GRADLINK_NUM_SERVERS)`;
  return new GradlinkError(
    'ERR_UNSUPPORTED',
    `the store type '${type}' needs servers, and ${here}: start the program with gradlink launch -n WORKERS -s SERVERS, ` +
      "or use 'allreduce', which needs none",
    { usable: true },
  );
}
