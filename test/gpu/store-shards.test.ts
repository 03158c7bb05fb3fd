// Stores on GPUs that share the optimizer's work: the same bits and the same files as where each key has one GPU.

import { afterEach, describe, expect, it } from 'vitest';

import { DeviceBuffer, KVStore, type KVStoreOptions } from '../../lib/index.js';
import { createOptimizer } from '../../lib/optimizers/index.js';
import type { OptimizerName } from '../../lib/optimizers/index.js';
import { gpuCount, named, spread } from '../support/gpu-arrays.js';

const opened: KVStore[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((kv) => kv.close()));
});

/** Not to be divided by two to four, long enough for a part on each. */
const count = 100_003;

async function open(type: string, options: KVStoreOptions): Promise<KVStore> {
  const kv = await KVStore.create(type as 'device', options);
  opened.push(kv);
  return kv;
}

/** Whole numbers, whose sums are the same in any order. */
const gradient = (round: number, device: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => ((i * 7 + round * 3 + device * 5) % 33) - 16);

/** What comes of some pushes, as bits. */
async function steps(
  kv: KVStore,
  gpus: readonly number[],
  rounds: readonly number[],
): Promise<Buffer> {
  const arrays = gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', count));
  try {
    for (const round of rounds) {
      for (const [device, array] of arrays.entries()) await array.copyFrom(gradient(round, device));
      await kv.pushPull('w', arrays, arrays);
    }
    const values = await Promise.all(arrays.map((array) => array.copyTo()));
    const [first, ...others] = values.map(({ buffer }) => Buffer.from(buffer));
    for (const other of others) expect(other.equals(first!)).toBe(true);
    return first!;
  } finally {
    for (const array of arrays) array.dispose();
  }
}

const stores = [
  { type: 'device', gpus: spread(4), options: { merge: 'peers' } },
  { type: 'device', gpus: spread(4), options: { peer: false } },
  { type: 'nccl', gpus: spread(gpuCount), options: {} },
] as const;

describe.each(stores)('$type $options', ({ type, gpus, options }) => {
  const create = (shardOptimizer: boolean): Promise<KVStore> =>
    open(type, { devices: named(gpus), ...options, shardOptimizer });

  it.each(['sgd', 'adam'] satisfies OptimizerName[])(
    'steps with %s to the same bits',
    async (name) => {
      const results: Buffer[] = [];
      for (const sharded of [false, true]) {
        const kv = await create(sharded);
        await kv.init('w', gradient(9, 9));
        const momentum = name === 'sgd' ? { momentum: 0.9 } : {};
        await kv.setOptimizer(createOptimizer(name, { learningRate: 0.01, wd: 0.1, ...momentum }));
        const first = await steps(kv, gpus, [0, 1]);
        await kv.setLearningRate(0.5);
        results.push(Buffer.concat([first, await steps(kv, gpus, [2])]));
      }
      expect(results[0]!.equals(results[1]!)).toBe(true);
    },
  );
});

describe('refused', () => {
  const devices = named(spread(2));

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
    await expect(open(type, options as KVStoreOptions)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(words) as string,
    });
  });
});
