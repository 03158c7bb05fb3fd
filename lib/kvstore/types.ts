// The names of store types, MXNet's spellings and ours, and what any of them is once it is open.
import { withMeant } from '../checks.js';
import { GradlinkError } from '../errors.js';
import type { NativeKVStore } from '../native/kvstore.js';

/** Spellings that mean the same, each under its kind. */
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

/** What a store is made of, whatever spelling it was asked for by. */
export type StoreKind = keyof typeof spellings;

/** A name of a store type: a {@link StoreKind}, or MXNet's other spellings of one. */
export type StoreTypeName = (typeof spellings)[StoreKind][number];

/** Whether values lie on servers. */
export function hasServers(kind: StoreKind): boolean {
  return kind.startsWith('dist_');
}

/** Whether a store is one of several workers. */
export function isDistributed(kind: StoreKind): boolean {
  return hasServers(kind) || kind === 'allreduce';
}

/** Every kind there is a name for, also where this build has no such store. */
export const storeKinds = Object.keys(spellings) as StoreKind[];

const kinds = new Map(
  storeKinds.flatMap((kind) =>
    spellings[kind].map((spelling): readonly [string, StoreKind] => [spelling, kind]),
  ),
);

/** Whether a word that a program is given when it runs names a store type, in lower case. */
export function isStoreType(name: unknown): name is StoreTypeName {
  return typeof name === 'string' && kinds.has(name);
}

/** A parsed type: what it means, and its name in lower case as given. */
export interface StoreType {
  readonly kind: StoreKind;
  readonly name: StoreTypeName;
}

/**
 * Reads a store type, in upper or lower case. In MXNet an unknown word silently means `local`; here it is an error.
 *
 * @throws GradlinkError ERR_UNSUPPORTED that lists the types and names the one that was meant.
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

/** A store that was opened, and this process's place in it. */
export interface StoreBackend {
  readonly native: NativeKVStore;
  /** This worker. */
  readonly rank: number;
  readonly numWorkers: number;
  readonly numServers: number;
}
