// MXNet's variable for the bound from which arrays are cut over the servers.
import { afterEach, expect, it, vi } from 'vitest';

import { KVStore } from '../../lib/index.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

it("takes MXNet's bound of arrays, and names the variable where it is none", async () => {
  vi.stubEnv('MXNET_KVSTORE_BIGARRAY_BOUND', 'many');
  await expect(KVStore.create('allreduce')).rejects.toThrow('MXNET_KVSTORE_BIGARRAY_BOUND');
  const none = KVStore.create('horovod', { bigArrayBound: 0 });
  await expect(none).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
  const kv = await KVStore.create('horovod', { bigArrayBound: 1 });
  // That nobody launched: alone.
  expect(kv).toMatchObject({ type: 'horovod', rank: 0, numWorkers: 1, numServers: 0 });
  await kv.close();
});
