// Custom stores by name.
import { argumentError } from '../errors.js';
import { aFunction } from '../checks.js';
import type { KVStoreOptions } from './store-options.js';
import { isStoreType } from './types.js';

/** Creates a store from the options of {@link KVStore.create}, which are not validated. */
export type StoreFactory = (options: KVStoreOptions) => object | Promise<object>;

/**
 * The results of {@link KVStore.create} for registered names: a program adds its own in `declare module 'gradlink' {
 * interface RegisteredStores { mine: MyStore } }`.
 */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- programs add to it
export interface RegisteredStores {}

const factories = new Map<string, StoreFactory>();

export function registerStore(name: unknown, factory: StoreFactory): void {
  if (typeof name !== 'string' || name === '') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'name', 'a name', name);
  }
  aFunction(factory, 'factory');
  const key = name.toLowerCase();
  if (isStoreType(key) || factories.has(key)) {
    const expected = 'a name that is not a store type yet';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'name', expected, name);
  }
  factories.set(key, factory);
}

export function registered(type: unknown): StoreFactory | undefined {
  return typeof type === 'string' ? factories.get(type.toLowerCase()) : undefined;
}
