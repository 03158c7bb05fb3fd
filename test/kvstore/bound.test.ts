// MXNet's variable for the bound from which arrays are cut over the servers.
import { afterEach, expect, it, vi } from 'vitest';

import { KVStore } from '../../lib/index.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

it("takes MXNet's bound of arrays, and names the variable where it is none", async () => {
  vi.stubEnv('MXNET_KVSTORE_BIGARRAY_BOUND', 'many');
  await expect(KVStore.create('allreduce')).rejects.toThrow('MXNET_KVSTORE_BIGARRAY_BOUND');
  const kv = await KVStore.create('allreduce', { bigArrayBound: 5 });
  await kv.close();
});
