// Stores of one's own, by name, as MXNet's KVStoreBase.register has them.
import { expect, it } from 'vitest';

import { KVStore } from '../../lib/index.js';
import type { KVStoreOptions } from '../../lib/index.js';

class TestStore {
  readonly options: KVStoreOptions;
  constructor(options: KVStoreOptions) {
    this.options = options;
  }
}

declare module '../../lib/kvstore/registry.js' {
  interface RegisteredStores {
    TestStore: TestStore;
    later: TestStore;
  }
}

it('create makes what was registered, in any case, with the options as they came', async () => {
  KVStore.register('TestStore', (options) => new TestStore(options));
  const options = { devices: 3 };
  const store = await KVStore.create('TestStore', options);
  expect(store).toBeInstanceOf(TestStore);
  expect(store.options).toBe(options);
  expect(await KVStore.create('TESTSTORE' as 'TestStore')).toBeInstanceOf(TestStore);
});

it('a factory may be asynchronous, and what it throws is what create rejects with', async () => {
  const problem = new Error('no such machine');
  KVStore.register('later', () => Promise.reject(problem));
  await expect(KVStore.create('later')).rejects.toBe(problem);
});

it.each(['local', 'Horovod', 'taken', 'Taken'])('refuses %s, which there is', (name) => {
  if (name === 'taken') KVStore.register(name, () => ({}));
  expect(() => {
    KVStore.register(name, () => ({}));
  }).toThrow(`a name that no type of store has and that is not registered for name, got '${name}'`);
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
