// How a store of the type `device` merges on GPUs, where it is told: without direct access, by copies; and what it refuses.
import { afterEach, describe, expect, it } from 'vitest';

import { DeviceBuffer, KVStore, type KVStoreOptions } from '../../lib/index.js';
import { createOptimizer } from '../../lib/optimizers/index.js';
import { spread } from '../support/gpu-arrays.js';

const gpus = spread(2);
const devices = gpus.map((gpu) => `gpu:${String(gpu)}`);
const opened: KVStore[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((kv) => kv.close()));
});

async function open(options: KVStoreOptions): Promise<KVStore> {
  const kv = await KVStore.create('device', options);
  opened.push(kv);
  return kv;
}

describe.each([{ peer: false }, { merge: 'peers' as const }])('%o', (options) => {
  it('sums and steps, again and again', async () => {
    const kv = await open({ devices, ...options });
    await kv.init('w', new Float32Array(3));
    await kv.setOptimizer(createOptimizer('sgd', { learningRate: 1 }));
    const arrays = gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 3));
    const outs = gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 3));
    for (const array of arrays) await array.copyFrom(Float32Array.of(1, 2, 3));
    for (const step of [2, 4, 6]) {
      await kv.pushPull('w', arrays, outs);
      for (const out of outs) {
        expect(await out.copyTo()).toEqual(Float32Array.of(-step, -2 * step, -3 * step));
      }
    }
    for (const array of [...arrays, ...outs]) array.dispose();
  });
});

describe('refused', () => {
  it.each([
    [{ devices: 2, peer: false }, 'ERR_INVALID_ARG_VALUE', "store type 'device' on GPUs"],
    [{ devices, peer: 'no' }, 'ERR_INVALID_ARG_TYPE', 'peer'],
    [{ devices, peer: false, merge: 'nccl' }, 'ERR_UNSUPPORTED', 'NCCL_P2P_DISABLE'],
  ])('%o', async (options, code, words) => {
    await expect(open(options as KVStoreOptions)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(words) as string,
    });
  });
});
