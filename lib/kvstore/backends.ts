// What each kind of store is opened with. A new kind is one entry here and a folder of its own.
import { GradlinkError } from '../errors.js';
import { native } from '../native.js';
import { nativePlacements } from '../native/kvstore.js';
import type { NativeKVStore } from '../native/kvstore.js';
import { storeKinds } from './types.js';
import type { StoreKind, StoreType } from './types.js';

/** A store that was opened, and this process's place in it. */
export interface StoreBackend {
  readonly native: NativeKVStore;
  /** This worker. */
  readonly rank: number;
  readonly numWorkers: number;
}

/** Opens a store for the arrays of `devices` devices. */
type Open = (devices: number) => Promise<StoreBackend>;

function onHost(placement: number): Open {
  return (devices) =>
    Promise.resolve({
      native: new (native().NativeKVStore)(placement, devices),
      rank: 0,
      numWorkers: 1,
    });
}

const backends: Readonly<Partial<Record<StoreKind, Open>>> = {
  local: onHost(nativePlacements.host),
  device: onHost(nativePlacements.devices),
};

/** Why a kind without a backend has none. */
function whyNot(kind: StoreKind): GradlinkError {
  const available = storeKinds.filter((other) => other in backends).join(' and ');
  const [code, reason] =
    kind === 'nccl'
      ? (['ERR_BACKEND_UNAVAILABLE', 'needs GPUs and NCCL, which this build does not use'] as const)
      : (['ERR_UNSUPPORTED', 'needs several workers, which this build does not connect'] as const);
  return new GradlinkError(
    code,
    `the store type '${kind}' ${reason}; available here: ${available}`,
    { usable: true },
  );
}

/**
 * Opens a store of this type.
 *
 * @throws GradlinkError ERR_UNSUPPORTED or ERR_BACKEND_UNAVAILABLE where this build or machine has no such store.
 */
export async function openBackend(type: StoreType, devices: number): Promise<StoreBackend> {
  const open = backends[type.kind];
  if (open === undefined) throw whyNot(type.kind);
  return await open(devices);
}
