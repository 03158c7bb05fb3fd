// The names of store types, MXNet's and ours, and an open store.
import { withMeant } from '../checks.js';
import { GradlinkError } from '../errors.js';
import type { NativeKVStore } from '../native/kvstore.js';

/** Equivalent spellings by kind. */
const spellings = {
  local: ['local', 'local_update_cpu', 'local_allreduce_cpu'],
  device: ['device', 'local_allreduce_device', 'local_update_device'],
  nccl: ['nccl'],
  dist_sync: ['dist_sync', 'dist'],
  dist_sync_device: ['dist_sync_device', 'dist_device_sync', 'dist_device'],
  dist_async: ['dist_async'],
  dist_async_device: ['dist_async_device', 'dist_device_async'],
  allreduce: ['allreduce', 'horovod'],
} as const;

/** The kind of a store, independent of the spelling. */
export type StoreKind = keyof typeof spellings;

/** A name of a store type: a {@link StoreKind}, or MXNet's other spellings of one. */
export type StoreTypeName = (typeof spellings)[StoreKind][number];

/** Whether values lie on servers. */
export function hasServers(kind: StoreKind): boolean {
  return kind.startsWith('dist_');
}

/** Whether a store has several workers. */
export function isDistributed(kind: StoreKind): boolean {
  return hasServers(kind) || kind === 'allreduce';
}

/** All kinds, including those that this build lacks. */
export const storeKinds = Object.keys(spellings) as StoreKind[];

const kinds = new Map(
  storeKinds.flatMap((kind) =>
    spellings[kind].map((spelling): readonly [string, StoreKind] => [spelling, kind]),
  ),
);

/** Whether a value, such as a command-line argument, names a store type in lower case. */
export function isStoreType(name: unknown): name is StoreTypeName {
  return typeof name === 'string' && kinds.has(name);
}

/** A parsed type: its kind, and the given name in lower case. */
export interface StoreType {
  readonly kind: StoreKind;
  readonly name: StoreTypeName;
}

/**
 * Parses a store type in any case. MXNet silently takes an unknown one for `local`; here it is an error.
 *
 * @throws GradlinkError ERR_UNSUPPORTED that lists the types and the likely one.
 */
export function parseStoreType(type: unknown): StoreType {
  const name = typeof type === 'string' ? type.toLowerCase() : undefined;
  const kind = name === undefined ? undefined : kinds.get(name);
  if (!isStoreType(name) || kind === undefined) {
    const others = [...kinds].filter(([spelling, of]) => spelling !== of);
    const aliases = others.map(([spelling, of]) => `${spelling} = ${of}`).join(', ');
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `expected a store type (${storeKinds.join(', ')}; also ${aliases}), got ${withMeant(type, [...kinds.keys()])}`,
      { usable: true },
    );
  }
  return { kind, name };
}

/** An open store with this process's rank. */
export interface StoreBackend {
  readonly native: NativeKVStore;
  /** This worker's number. */
  readonly rank: number;
  readonly numWorkers: number;
  readonly numServers: number;
  /** Whether its GPUs take the steps that they have kernels for. */
  readonly stepsOnGpus: boolean;
}
