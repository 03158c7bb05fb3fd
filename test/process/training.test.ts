// Training on several processes with the default backend: blocking in model.fit, overlapped in a loop, over stores.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

import { afterEach, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { testBackend } from '../support/training.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

const require = createRequire(import.meta.url);
const url = (path: string): string => JSON.stringify(pathToFileURL(path).href);
const train = new URL('../../dist/tfjs.js', import.meta.url).pathname;
const index = new URL('../../dist/index.js', import.meta.url).pathname;

/** A small convolutional network, the same samples on every rank, and a rank's share of them. */
const setting = `
  import * as tf from ${url(require.resolve('@tensorflow/tfjs-core'))};
  import * as layers from ${url(require.resolve('@tensorflow/tfjs-layers'))};
  import * as training from ${url(train)};
  import { Adam, SGD } from ${url(index)};
  await training.useBackend('${testBackend ?? 'wasm'}', { allowCpu: true });
  const comm = await Communicator.world();
  const { rank, size } = comm;
  const numbers = (count, step) => Float32Array.from({ length: count }, (_, i) => Math.sin(1 + i * step));
  const makeModel = () => {
    const model = layers.sequential({
      layers: [
        layers.layers.conv2d({ inputShape: [6, 6, 1], filters: 2, kernelSize: 3, activation: 'tanh' }),
        layers.layers.depthwiseConv2d({ kernelSize: 2, activation: 'tanh' }),
        layers.layers.flatten(),
        layers.layers.dense({ units: 3 }),
      ],
    });
    model.setWeights(model.getWeights().map((one, i) => tf.tensor(numbers(one.size, 0.3 + i), one.shape)));
    return model;
  };
  const valuesOf = (model) => model.getWeights().flatMap((one) => [...one.dataSync()]);
  const count = 8;
  const x = tf.tensor4d(numbers(count * 36, 0.77), [count, 6, 6, 1]);
  const y = tf.tensor2d(numbers(count * 3, 1.3), [count, 3]);
  const share = count / size;
  const mine = { x: tf.slice(x, rank * share, share), y: tf.slice(y, rank * share, share) };
  const lossOf = (model, batch) => () => tf.losses.meanSquaredError(batch.y, model.apply(batch.x));
  const alone = makeModel();
  const inner = tf.train.sgd(0.1);
  for (let step = 0; step < 4; ++step) {
    inner.minimize(lossOf(alone, { x, y }), false, alone.trainableWeights.map((one) => one.read()));
  }
  const expected = valuesOf(alone);
  const distance = (model) => Math.max(...valuesOf(model).map((value, i) => Math.abs(value - expected[i])));
`;

async function run(size: number, body: string): Promise<readonly (readonly unknown[])[]> {
  const ended = await scripts.runRanks(size, `${setting} ${body} await comm.close();`);
  ended.forEach((one) => expect(one).toMatchObject(well));
  return ended.map(({ reports }) => reports);
}

describe('two processes follow one', () => {
  it('overlapped, blocking in model.fit, and over a store', { tags: 'smoke' }, async () => {
    const reports = await run(
      2,
      `
      const model = makeModel();
      const ddp = await training.DistributedDataParallel.create(model, comm);
      const optimizer = tf.train.sgd(0.1);
      for (let step = 0; step < 4; ++step) (await ddp.step(optimizer, lossOf(model, mine))).dispose();
      report(distance(model));

      const fitted = makeModel();
      const wrapped = new training.DistributedOptimizer(tf.train.sgd(0.1), comm);
      fitted.compile({ optimizer: wrapped, loss: 'meanSquaredError' });
      await fitted.fit(mine.x, mine.y, { batchSize: share, epochs: 4, verbose: 0 });
      report(distance(fitted));

      const stored = makeModel();
      const kv = await KVStore.create('allreduce');
      const trainer = await training.KVStoreTrainer.create(stored, kv, {
        optimizer: new SGD({ learningRate: 0.1 }),
      });
      for (let step = 0; step < 4; ++step) (await trainer.step(lossOf(stored, mine))).dispose();
      report(distance(stored));
      await kv.close();

      // gluon's Trainer: the sum over the workers.
      const summed = makeModel();
      const sums = await KVStore.create('allreduce');
      const gluons = await training.KVStoreTrainer.create(summed, sums, {
        optimizer: new SGD({ learningRate: 0.1 / size }),
        reduction: 'sum',
      });
      for (let step = 0; step < 4; ++step) (await gluons.step(lossOf(summed, mine))).dispose();
      report(distance(summed));
      await sums.close();

      // So that the figures above mean something.
      report(distance(makeModel()));
      `,
    );
    for (const [together, fitted, stored, summed, untrained] of reports as number[][]) {
      expect(together).toBeLessThan(1e-5);
      expect(fitted).toBeLessThan(1e-5);
      expect(stored).toBeLessThan(1e-5);
      expect(summed).toBeLessThan(1e-5);
      expect(untrained).toBeGreaterThan(1e-2);
    }
  });
});
