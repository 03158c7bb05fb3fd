// Gradients that cross between a device and the host bucket by bucket.
import * as tf from '@tensorflow/tfjs-core';
import type { Variable } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';

import { useBackend } from '../../lib/train/backends.js';
import { KVStore } from '../../lib/kvstore/index.js';
import { SGD } from '../../lib/optimizers/index.js';
import {
  DistributedDataParallel,
  DistributedOptimizer,
  KVStoreTrainer,
} from '../../lib/train/index.js';
import type { DataParallelOptions, DistributedOptimizerOptions } from '../../lib/train/index.js';
import { asRanks, Network, samples } from './support.js';

beforeAll(async () => {
  await useBackend('cpu');
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** What crosses to the host from here on. */
function crossings(): { reads: number; bytes: number } {
  const counted = { reads: 0, bytes: 0 };
  const backend = tf.backend();
  const read = backend.readSync.bind(backend);
  vi.spyOn(backend, 'readSync').mockImplementation((id) => {
    const values = read(id);
    counted.reads++;
    counted.bytes += (values as Float32Array).byteLength;
    return values;
  });
  return counted;
}

/** A model of many small variables. */
function chain(length: number): { readonly variables: Variable[]; readonly loss: () => tf.Scalar } {
  const variables = Array.from({ length }, (_, i) => tf.variable(tf.fill([4, 4], 0.1 + i / 100)));
  return {
    variables,
    loss: () => tf.mean(variables.reduce<tf.Tensor>((x, w) => tf.matMul(x, w), tf.eye(4))),
  };
}

async function trained(options: DataParallelOptions): Promise<number[][]> {
  return asRanks(2, async (comm) => {
    const network = new Network();
    const ddp = await DistributedDataParallel.create(network.variables, comm, options);
    for (let step = 0; step < 5; ++step) {
      const own = samples(step * 8 + comm.rank * 4, step * 8 + comm.rank * 4 + 4);
      (await ddp.step(tf.train.sgd(0.1), () => network.loss(own), { samples: 4 })).dispose();
    }
    return network.values();
  });
}

describe.each(['overlap', 'async', 'sync'] as const)('%s', (mode) => {
  test.each([{ bucketCapBytes: Infinity }, { bucketCapBytes: 64 }, { bucketCapBytes: 4 }])(
    'gathered gradients train as each by itself does, $bucketCapBytes',
    async ({ bucketCapBytes }) => {
      const each = await trained({ mode, bucketCapBytes, gather: false });
      const gathered = await trained({ mode, bucketCapBytes, gather: true });
      expect(gathered).toEqual(each);
    },
  );

  test('a step reads buckets, not gradients', async () => {
    await asRanks(1, async (comm) => {
      const { variables, loss } = chain(30);
      const bytes = 30 * 16 * 4;
      const counts = async (gather: boolean) => {
        const ddp = await DistributedDataParallel.create(variables, comm, {
          mode,
          gather,
          bucketCapBytes: bytes / 3,
        });
        for (let step = 0; step < 2; ++step) (await ddp.step(tf.train.sgd(0), loss)).dispose();
        expect(ddp.buckets).toHaveLength(3);
        const counted = crossings();
        (await ddp.step(tf.train.sgd(0), loss)).dispose();
        vi.restoreAllMocks();
        return counted;
      };
      expect(await counts(true)).toEqual({ reads: 3, bytes });
      expect(await counts(false)).toEqual({ reads: 30, bytes });
    });
  });
});

test('a variable that is not used takes no part in the read', async () => {
  await asRanks(1, async (comm) => {
    const { variables, loss } = chain(4);
    const unused = tf.variable(tf.ones([8]));
    const ddp = await DistributedDataParallel.create([...variables, unused], comm, {
      gather: true,
      findUnused: true,
    });
    const counted = crossings();
    const { value, gradients } = await ddp.gradients(loss);
    expect(counted).toEqual({ reads: 1, bytes: 4 * 64 });
    expect(gradients.map(({ tensor }) => tensor as tf.Tensor | null)[4]).toBeNull();
    const { tensor } = gradients[0]!;
    const before = [...tensor.dataSync()];
    // Kept ones are the caller's: the next pass writes elsewhere.
    tf.dispose([value, (await ddp.gradients(() => tf.mul(2, loss()))).value]);
    expect([...tensor.dataSync()]).toEqual(before);
  });
});

test('passes that only add up are gathered too', async () => {
  const sums = await asRanks(2, async (comm) => {
    const { variables, loss } = chain(3);
    const gradientsOf = async (gather: boolean) => {
      const ddp = await DistributedDataParallel.create(variables, comm, { gather });
      (await ddp.noSync(() => ddp.gradients(loss))).value.dispose();
      const { gradients } = await ddp.gradients(loss);
      return gradients.flatMap(({ tensor }) => [...tensor.dataSync()]);
    };
    return { gathered: await gradientsOf(true), each: await gradientsOf(false) };
  });
  for (const { gathered, each } of sums) expect(gathered).toEqual(each);
});

test('weights cross at once where they are averaged', async () => {
  const run = (options: DistributedOptimizerOptions) =>
    asRanks(2, async (comm) => {
      const network = new Network();
      const optimizer = new DistributedOptimizer(tf.train.sgd(0.1), comm, {
        algorithm: 'local-sgd',
        stepsPerCommunication: 1,
        ...options,
      });
      for (let step = 0; step < 3; ++step) {
        const own = samples(comm.rank * 4, comm.rank * 4 + 4);
        await optimizer.minimizeAsync(() => network.loss(own), false, network.variables);
      }
      return network.values();
    });
  expect(await run({ gather: true })).toEqual(await run({ gather: false }));
});

describe('over a store', () => {
  test.each([
    ['stepped there', () => new SGD({ learningRate: 0.1 })],
    ['stepped here', () => tf.train.sgd(0.1)],
  ])('gathered gradients train as each by itself does, %s', async (_, optimizer) => {
    const trained = async (gather: boolean) => {
      await using kv = await KVStore.create('local');
      const network = new Network();
      const options = { optimizer: optimizer(), gather };
      const trainer = await KVStoreTrainer.create(network.variables, kv, options);
      for (let step = 0; step < 5; ++step) {
        (await trainer.step(() => network.loss(samples(0, 8)))).dispose();
      }
      return network.values();
    };
    expect(await trained(true)).toEqual(await trained(false));
  });

  test.each([
    [true, 1],
    [false, 30],
  ])('a step with gather %s reads %d times, and leaves nothing', async (gather, reads) => {
    await using kv = await KVStore.create('local');
    const { variables, loss } = chain(30);
    const optimizer = new SGD({ learningRate: 0.1 });
    const trainer = await KVStoreTrainer.create(variables, kv, { optimizer, gather });
    (await trainer.step(loss)).dispose();
    const before = tf.memory().numTensors;
    const counted = crossings();
    (await trainer.step(loss)).dispose();
    expect(counted).toEqual({ reads, bytes: 30 * 16 * 4 });
    expect(tf.memory().numTensors).toBe(before);
  });
});

test('on a GPU buckets are gathered unasked, and waiting for computing is not copying', async () => {
  await asRanks(1, async (comm) => {
    const { variables, loss } = chain(5);
    const ddp = await DistributedDataParallel.create(variables, comm);
    const backend = tf.backend();
    // What tfjs-node says of itself.
    Object.assign(backend, { isUsingGpuDevice: true });
    onTestFinished(() => void Reflect.deleteProperty(backend, 'isUsingGpuDevice'));
    const read = backend.readSync.bind(backend);
    const sizes: number[] = [];
    vi.spyOn(backend, 'readSync').mockImplementation((id) => {
      const values = read(id);
      sizes.push((values as Float32Array).length);
      return values;
    });
    (await ddp.step(tf.train.sgd(0), loss)).dispose();
    // One number first, which comes when all before it is computed.
    expect(sizes).toEqual([1, 5 * 16]);
  });
});
