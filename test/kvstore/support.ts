// Stores that are closed after each test, and small arrays.
import { KVStore } from '../../lib/kvstore/kvstore.js';
import type { KVStoreOptions } from '../../lib/kvstore/store-options.js';
import type { StoreTypeName } from '../../lib/kvstore/types.js';

const opened: KVStore[] = [];

export async function open(type: StoreTypeName, options: KVStoreOptions = {}): Promise<KVStore> {
  const kv = await KVStore.create(type, options);
  opened.push(kv);
  return kv;
}

export async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((kv) => kv.close()));
}

export function filled(length: number, value: number): Float32Array<ArrayBuffer> {
  return new Float32Array(length).fill(value);
}

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
