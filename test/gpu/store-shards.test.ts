// Stores on GPUs that share the optimizer's work, and where that is refused. Their bits are tested natively.

import { describe, expect, it } from 'vitest';

import { KVStore, type KVStoreOptions } from '../../lib/index.js';
import { createOptimizer } from '../../lib/optimizers/index.js';
import { named, spread } from '../support/gpu-arrays.js';

const devices = named(spread(2));

it('the option comes to the store', async () => {
  await using kv = await KVStore.create('device', {
    devices,
    merge: 'peers',
    shardOptimizer: true,
  });
  await expect(kv.setOptimizer(createOptimizer('lamb'))).rejects.toThrow('shardOptimizer');
});

describe('refused', () => {
  it.each([
    [
      'device',
      { devices: 2, shardOptimizer: true },
      'ERR_INVALID_ARG_VALUE',
      "'device' or 'nccl' on GPUs",
    ],
    ['local', { devices, shardOptimizer: true }, 'ERR_INVALID_ARG_VALUE', "store type 'allreduce'"],
    ['device', { devices, shardOptimizer: 1 }, 'ERR_INVALID_ARG_TYPE', 'shardOptimizer'],
    ['device', { devices: 2, peer: false }, 'ERR_INVALID_ARG_VALUE', "store type 'device' on GPUs"],
    ['device', { devices, peer: 'no' }, 'ERR_INVALID_ARG_TYPE', 'peer'],
    ['device', { devices, peer: false, merge: 'nccl' }, 'ERR_UNSUPPORTED', 'NCCL_P2P_DISABLE'],
  ])('%s %o', async (type, options, code, words) => {
    await expect(KVStore.create(type as 'device', options as KVStoreOptions)).rejects.toMatchObject(
      {
        code,
        message: expect.stringContaining(words) as string,
      },
    );
  });
});
