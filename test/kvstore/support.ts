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
