// Opens each kind of store. A new kind is one entry here.
import { defaultTimeoutMs } from '../time.js';
import { GradlinkError } from '../errors.js';
import { native } from '../native/load.js';
import { nativeGpuMerges, nativePlacements } from '../native/kvstore.js';
import type { NativeKVStore } from '../native/kvstore.js';
import type { StoreDevices } from './devices.js';
import { openWithServers, openWithoutServers } from './distributed.js';
import type { OpeningOptions } from './store-options.js';
import { storeKinds } from './types.js';
import type { StoreBackend, StoreKind, StoreType } from './types.js';

/** Opens a kind of store on CPU devices, if possible, and on GPUs. */
interface Backend {
  readonly onHost?: (devices: number, options: OpeningOptions) => Promise<StoreBackend>;
  readonly onGpus: (gpus: readonly number[], options: OpeningOptions) => Promise<StoreBackend>;
}

function alone(store: NativeKVStore, stepsOnGpus: boolean): StoreBackend {
  return { native: store, rank: 0, numWorkers: 1, numServers: 0, stepsOnGpus };
}

function onHost(placement: number): NonNullable<Backend['onHost']> {
  return (devices) =>
    Promise.resolve(alone(new (native().NativeKVStore)(placement, devices), false));
}

function withServers(type: StoreKind): Backend {
  const asynchronous = type === 'dist_async' || type === 'dist_async_device';
  const mergeOnHost = type === 'dist_sync' || type === 'dist_async';
  const store = { type, asynchronous, mergeOnHost };
  return {
    onHost: (devices, options) => openWithServers({ ...store, devices, gpus: null }, options),
    onGpus: (gpus, options) => {
      assertDriver();
      return openWithServers({ ...store, devices: gpus.length, gpus }, options);
    },
  };
}

/** Opens a store and starts its merging: NCCL only fails when its ranks connect. */
async function openMerging(
  gpus: readonly number[],
  merge: number,
  { peer, shardOptimizer }: OpeningOptions,
): Promise<StoreBackend> {
  assertDriver();
  const store = native().NativeKVStore.onGpus(gpus, merge, defaultTimeoutMs, peer, shardOptimizer);
  try {
    await store.barrier();
  } catch (error) {
    await store.close();
    throw error;
  }
  return alone(store, merge !== nativeGpuMerges.host);
}

function onGpus(merge: number): Backend['onGpus'] {
  return (gpus, options) => openMerging(gpus, merge, options);
}

const merges = {
  nccl: nativeGpuMerges.nccl,
  peers: nativeGpuMerges.peer,
  auto: nativeGpuMerges.automatic,
} as const;

/** NCCL may load but fail to run: with an old driver, or a container with a small /dev/shm. */
const deviceOnGpus: Backend['onGpus'] = async (gpus, options) => {
  const { merge, peer } = options;
  // NCCL is not used without direct access.
  const nccl = merge === 'auto' && peer;
  try {
    return await openMerging(gpus, merges[merge], options);
  } catch (error) {
    if (!nccl || !(error instanceof GradlinkError)) throw error;
    const backend = await openMerging(gpus, nativeGpuMerges.peer, options);
    warnOnce(
      `the store type 'device' merges by copies between the GPUs, because NCCL cannot start: ${error.message}; ` +
        "merge: 'peers' asks for that, merge: 'nccl' for an error",
    );
    return backend;
  }
};

const warned = new Set<string>();
function warnOnce(text: string): void {
  if (warned.has(text)) return;
  warned.add(text);
  process.emitWarning(text, { code: 'GRADLINK_MERGE' });
}

function assertDriver(): void {
  // Without a driver the error is complete; with one, NCCL may be missing.
  try {
    native().gpuCount();
  } catch (error) {
    if (!(error instanceof GradlinkError) || error.code !== 'ERR_BACKEND_UNAVAILABLE') throw error;
    const advice =
      "without GPUs use CPU devices: { devices: 4 } or { devices: ['cpu:0', 'cpu:1'] }";
    throw new GradlinkError(error.code, `${error.message}; ${advice}`, {
      cause: error,
      usable: true,
    });
  }
}

const backends: Readonly<Record<StoreKind, Backend>> = {
  local: { onHost: onHost(nativePlacements.host), onGpus: onGpus(nativeGpuMerges.host) },
  device: { onHost: onHost(nativePlacements.devices), onGpus: deviceOnGpus },
  nccl: { onGpus: onGpus(nativeGpuMerges.nccl) },
  dist_sync: withServers('dist_sync'),
  dist_sync_device: withServers('dist_sync_device'),
  dist_async: withServers('dist_async'),
  dist_async_device: withServers('dist_async_device'),
  allreduce: {
    onHost: (devices, options) => openWithoutServers(devices, null, options),
    onGpus: (gpus, options) => {
      assertDriver();
      return openWithoutServers(gpus.length, gpus, options);
    },
  },
};

/** The error of a kind that needs GPUs. */
function needsGpus(kind: StoreKind, names: readonly string[]): GradlinkError {
  const kinds = storeKinds.filter((other) => backends[other].onHost !== undefined);
  const available = new Intl.ListFormat('en', { type: 'conjunction' }).format(kinds);
  const message = `the store type '${kind}' needs GPUs (devices: ['gpu:0', ...]), not ${names.join(', ')}`;
  return new GradlinkError('ERR_BACKEND_UNAVAILABLE', `${message}; available here: ${available}`, {
    usable: true,
  });
}

/**
 * Opens a store of this type.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE if this build or machine has no such store.
 */
export async function openBackend(
  type: StoreType,
  devices: StoreDevices,
  options: OpeningOptions,
): Promise<StoreBackend> {
  const { onHost, onGpus } = backends[type.kind];
  if (devices.gpus !== null) return await onGpus(devices.gpus, options);
  if (onHost === undefined) throw needsGpus(type.kind, devices.names);
  return await onHost(devices.names.length, options);
}
