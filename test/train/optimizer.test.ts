// The wrapped optimizer where TensorFlow.js expects one of its own, and training over stores.
import * as tf from '@tensorflow/tfjs-core';
import type { Scalar } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import * as layers from '@tensorflow/tfjs-layers';
import { beforeAll, describe, expect, test, vi } from 'vitest';

import { KVStore } from '../../lib/kvstore/kvstore.js';
import { Adam, SGD } from '../../lib/optimizers/index.js';
import {
  broadcastVariables,
  DistributedDataParallel,
  DistributedOptimizer,
  KVStoreTrainer,
} from '../../lib/train/index.js';
import { asRanks, largestDifference, Network, samples, sines, useTestBackend } from './support.js';

beforeAll(async () => {
  await useTestBackend();
});

function classifier(): layers.LayersModel {
  const inputs = layers.input({ shape: [6, 6, 1] });
  let out = layers.layers
    .conv2d({ filters: 2, kernelSize: 3, activation: 'relu' })
    .apply(inputs) as layers.SymbolicTensor;
  out = layers.layers.batchNormalization().apply(out) as layers.SymbolicTensor;
  out = layers.layers.flatten().apply(out) as layers.SymbolicTensor;
  out = layers.layers
    .dense({ units: 3, activation: 'softmax' })
    .apply(out) as layers.SymbolicTensor;
  const model = layers.model({ inputs, outputs: out });
  model.setWeights(
    model.getWeights().map((weight, i) => {
      const values = tf.tensor(sines(weight.size, 0.3 + i), weight.shape);
      // A variance is above 0.
      return tf.add(values, 1);
    }),
  );
  return model;
}

test('model.fit trains through it as through what it wraps', async () => {
  const fitted = async (optimizer: tf.Optimizer): Promise<number[]> => {
    const model = classifier();
    model.compile({ optimizer, loss: 'categoricalCrossentropy' });
    const x = tf.tensor4d(sines(8 * 36, 0.77), [8, 6, 6, 1]);
    const y = tf.oneHot([0, 1, 2, 0, 1, 2, 0, 1], 3);
    await model.fit(x, y, { batchSize: 4, epochs: 2, shuffle: false });
    return model.getWeights().flatMap((weight) => [...weight.dataSync()]);
  };
  const expected = await fitted(tf.train.adam(0.01));
  for (const algorithm of [
    'gradient-allreduce',
    'adapt-with-combine',
    'local-sgd',
    'adasum',
  ] as const) {
    const [got] = await asRanks(1, (comm) =>
      fitted(new DistributedOptimizer(tf.train.adam(0.01), comm, { algorithm })),
    );
    expect(largestDifference(got!, expected)).toBeLessThan(1e-6);
  }
});

test('gradients and their step apart are what minimize does', async () => {
  await asRanks(1, async (comm) => {
    const own = samples(0, 6);
    const [whole, apart] = [new Network(), new Network()];
    const optimizers = [whole, apart].map(
      () => new DistributedOptimizer(tf.train.momentum(0.1, 0.9), comm),
    );
    for (let step = 0; step < 3; ++step) {
      optimizers[0]!.minimize(() => whole.loss(own), false, whole.variables);
      const { value, grads } = optimizers[1]!.computeGradients(
        () => apart.loss(own),
        apart.variables,
      );
      optimizers[1]!.applyGradients(grads);
      tf.dispose([value, grads]);
    }
    expect(apart.values()).toEqual(whole.values());
    await Promise.resolve();
  });
});

test('an optimizer belongs to one list of variables', async () => {
  await asRanks(1, async (comm) => {
    const network = new Network();
    const optimizer = new DistributedOptimizer(tf.train.sgd(0.1), comm);
    const loss = (): Scalar => network.loss(samples(0, 2));
    optimizer.minimize(loss, false, network.variables);
    expect(() => optimizer.minimize(loss, false, network.variables.slice(1))).toThrow(
      /\b4 variables\b/,
    );
    await Promise.resolve();
  });
});

test('options that do not go together are refused', async () => {
  await asRanks(1, async (comm) => {
    const make = (options: object) => () =>
      new DistributedOptimizer(tf.train.sgd(1), comm, options);
    expect(make({ algorithm: 'none' })).toThrow(/gradient-allreduce, .*algorithm, got 'none'/);
    expect(make({ algorithm: 'adasum', op: 'avg' })).toThrow(
      /\bop\b.*'gradient-allreduce'.*'adasum'/,
    );
    expect(make({ backwardPassesPerStep: 0 })).toThrow(/backwardPassesPerStep/);
    await Promise.resolve();
  });
});

describe('over a store', () => {
  const trained = async (
    type: 'device' | 'local',
    make: () => ConstructorParameters<typeof Object>[0],
  ): Promise<number[]> => {
    await using kv = await KVStore.create(type);
    const network = new Network();
    const own = samples(0, 8);
    const optimizer = make() as SGD;
    const trainer = await KVStoreTrainer.create(network.variables, kv, { optimizer });
    for (let step = 0; step < 5; ++step) {
      (await trainer.step(() => network.loss(own))).dispose();
    }
    expect(trainer.times!.backwardSeconds).toBeGreaterThan(0);
    return network.values();
  };
  const alone = (make: () => tf.Optimizer): number[] => {
    const network = new Network();
    const optimizer = make();
    const own = samples(0, 8);
    for (let step = 0; step < 5; ++step) {
      optimizer.minimize(() => network.loss(own), false, network.variables);
    }
    return network.values();
  };

  test.each(['local', 'device'] as const)('%s', async (type) => {
    const sgd = alone(() => tf.train.sgd(0.1));
    const inStore = await trained(type, () => new SGD({ learningRate: 0.1 }));
    expect(largestDifference(inStore, sgd)).toBeLessThan(1e-6);
    const here = await trained(type, () => tf.train.sgd(0.1));
    expect(largestDifference(here, sgd)).toBeLessThan(1e-6);
    const adam = alone(() => tf.train.adam(0.01, 0.9, 0.999, 1e-8));
    const adamInStore = await trained(type, () => new Adam({ learningRate: 0.01 }));
    expect(largestDifference(adamInStore, adam)).toBeLessThan(1e-5);
  });

  test.each(['here', 'in the store'])('a scalar too, with the optimizer %s', async (where) => {
    await using kv = await KVStore.create('local');
    const x = tf.variable(tf.scalar(5));
    const optimizer = where === 'here' ? tf.train.sgd(0.1) : new SGD({ learningRate: 0.1 });
    const trainer = await KVStoreTrainer.create([x], kv, { optimizer });
    // The gradient of (x - 2)² is 6, then 4.8.
    (await trainer.step(() => tf.square(tf.sub(x, 2)))).dispose();
    expect(x.shape).toEqual([]);
    expect(x.dataSync()[0]).toBeCloseTo(4.4, 5);
    (await trainer.step(() => tf.square(tf.sub(x, 2)))).dispose();
    expect(x.dataSync()[0]).toBeCloseTo(3.92, 5);
  });
});

test.each([1, 2])(
  'a backward pass that fails tells what was pushed: %i workers',
  async (workers) => {
    await using kv = await KVStore.create('local');
    vi.spyOn(kv, 'numWorkers', 'get').mockReturnValue(workers);
    const [first, second] = [tf.variable(tf.scalar(2)), tf.variable(tf.scalar(3))];
    const options = { optimizer: new SGD({ learningRate: 0.1 }), gather: false };
    const trainer = await KVStoreTrainer.create([first, second], kv, options);
    const cause = new Error('no gradient today');
    const broken = tf.customGrad((x) => ({
      value: tf.mul(x as tf.Tensor, 1),
      gradFunc: () => {
        throw cause;
      },
    }));
    // The second one's gradient comes first.
    const loss = (fails: boolean) => (): Scalar => tf.mul(second, fails ? broken(first) : first);
    const told = { code: 'ERR_ABORTED', usable: workers === 1, cause };
    await expect(trainer.step(loss(true))).rejects.toMatchObject({
      ...told,
      message: expect.stringContaining(' 1 of 2 keys ') as string,
    });
    if (workers > 1) {
      await expect(trainer.step(loss(false))).rejects.toMatchObject(told);
      return;
    }
    (await trainer.step(loss(false))).dispose();
    // Of what was pushed both steps count: 3 - 0.1 * 2 - 0.1 * 2.
    expect([first, second].map((one) => one.dataSync()[0]!.toFixed(4))).toEqual([
      '1.7000',
      '2.6000',
    ]);
    const nothing = new TypeError('no loss');
    const step = trainer.step(() => {
      throw nothing;
    });
    await expect(step).rejects.toBe(nothing);
  },
);

test('a step whose exchange fails ends when all of its exchanges have', async () => {
  await using kv = await KVStore.create('local');
  const list = [tf.variable(tf.scalar(2)), tf.variable(tf.scalar(3))];
  const options = { optimizer: new SGD({ learningRate: 0.1 }), gather: false };
  const trainer = await KVStoreTrainer.create(list, kv, options);
  const failure = new Error('not today');
  let end = (): void => undefined;
  const pending = new Promise<void>((resolve) => (end = resolve));
  const exchange = vi.spyOn(kv, 'pushPull').mockRejectedValueOnce(failure);
  exchange.mockReturnValueOnce(pending);
  const ended = vi.fn();
  const loss = (): Scalar => tf.mul(list[0]!, list[1]!);
  const step = trainer.step(loss).finally(ended);
  await new Promise(setImmediate);
  expect(exchange).toHaveBeenCalledTimes(2);
  expect(ended).not.toHaveBeenCalled();
  await expect(trainer.step(loss)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' });
  end();
  await expect(step).rejects.toBe(failure);
});

test('DDP trains a scalar variable', async () => {
  const values = await asRanks(2, async (comm) => {
    const x = tf.variable(tf.scalar(5));
    const ddp = await DistributedDataParallel.create([x], comm);
    // Gradients 6 and 10: their mean is 8.
    const loss = (): tf.Scalar => tf.square(tf.sub(x, comm.rank === 0 ? 2 : 0));
    (await ddp.step(tf.train.sgd(0.1), loss)).dispose();
    return x.dataSync()[0];
  });
  expect(values[0]).toBeCloseTo(4.2, 5);
  expect(values[1]).toBe(values[0]);
});

test('ranks that have joined bring zeros to the average, as with Horovod', async () => {
  const values = await asRanks(2, async (comm) => {
    comm.setJoinable();
    const x = tf.variable(tf.scalar(5));
    const optimizer = new DistributedOptimizer(tf.train.sgd(0.1), comm);
    // Gradients 6 and 5.4, halved, since rank 0 has none.
    const loss = (): Scalar => tf.square(tf.sub(x, 2));
    for (let step = 0; step < 2 * comm.rank; ++step) optimizer.minimize(loss, false, [x]);
    const root = await comm.join();
    await broadcastVariables([x], comm, { root });
    return [root, x.dataSync()[0]];
  });
  expect(values[1]![0]).toBe(1);
  expect(values[1]![1]).toBeCloseTo(4.43, 5);
  expect(values[0]).toEqual(values[1]);
});
