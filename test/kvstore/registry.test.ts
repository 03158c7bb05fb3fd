// Stores of one's own, by name, as MXNet's KVStoreBase.register has them.
import { expect, it } from 'vitest';

import { KVStore } from '../../lib/index.js';
import type { KVStoreOptions } from '../../lib/index.js';
import { errorWith } from '../support/errors.js';

class TestStore {
  readonly options: KVStoreOptions;
  constructor(options: KVStoreOptions) {
    this.options = options;
  }
}

declare module '../../lib/kvstore/registry.js' {
  interface RegisteredStores {
    OwnStore: TestStore;
    later: TestStore;
  }
}

it('create makes what was registered, in any case, with the options as they came', async () => {
  KVStore.register('OwnStore', (options) => new TestStore(options));
  const options = { devices: 3 };
  const store = await KVStore.create('OwnStore', options);
  expect(store).toBeInstanceOf(TestStore);
  expect(store.options).toBe(options);
  expect(await KVStore.create('OWNSTORE' as 'OwnStore')).toBeInstanceOf(TestStore);
});

it('a factory may be asynchronous, and what it throws is what create rejects with', async () => {
  const problem = new Error('no machine');
  KVStore.register('later', () => Promise.reject(problem));
  await expect(KVStore.create('later')).rejects.toBe(problem);
});

it.each(['local', 'Horovod', 'taken', 'Taken'])('refuses %s, which there is', (name) => {
  if (name === 'taken') KVStore.register(name, () => ({}));
  expect(() => {
    KVStore.register(name, () => ({}));
  }).toThrow(errorWith('ERR_INVALID_ARG_VALUE', new RegExp(` name, .*'${name}'`)));
});

it('refuses what is no name and no factory', () => {
  const wrong = (name: unknown, factory?: unknown): void => {
    (KVStore as unknown as { register(name: unknown, factory: unknown): void }).register(
      name,
      factory,
    );
  };
  expect(() => {
    wrong('');
  }).toThrow('a name');
  expect(() => {
    wrong('fine', {});
  }).toThrow('a function');
});
