// Batch normalisation over processes follows one process that has all their samples, forward and backward.
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

const setting = `
  import * as tf from ${url(require.resolve('@tensorflow/tfjs-core'))};
  import * as layers from ${url(require.resolve('@tensorflow/tfjs-layers'))};
  import * as training from ${url(train)};
  await training.useBackend('${testBackend ?? 'wasm'}', { allowCpu: true });
  const comm = await Communicator.world();
  const { rank, size } = comm;
  const statistics = await comm.split(0);
  const numbers = (count, step) => Float32Array.from({ length: count }, (_, i) => Math.sin(1 + i * step));
  const farthest = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i])), a.length === b.length ? 0 : 1);
  const makeModel = (args = {}) => {
    const norm = (more) => layers.layers.batchNormalization({ momentum: 0.8, epsilon: 1e-3, ...args, ...more });
    const model = layers.sequential({
      layers: [
        layers.layers.conv2d({ inputShape: [5, 5, 1], filters: 2, kernelSize: 2 }),
        norm({ axis: -1 }),
        layers.layers.reLU(),
        layers.layers.flatten(),
        norm({ axis: 1 }),
        layers.layers.dense({ units: 3 }),
      ],
    });
    model.setWeights(model.getWeights().map((one, i) => tf.add(tf.mul(tf.tensor(numbers(one.size, 0.3 + i), one.shape), 0.4), 0.5)));
    return model;
  };
  const valuesOf = (model) => model.getWeights().flatMap((one) => [...one.dataSync()]);
  const count = 16;
  // The ranks' batches have means far apart.
  const inputs = numbers(count * 25, 0.77).map((value, i) => value + Math.floor(i / 100));
  const x = tf.tensor4d(inputs, [count, 5, 5, 1]);
  const y = tf.tensor2d(numbers(count * 3, 1.3), [count, 3]);
  const share = count / size;
  const mine = { x: tf.slice(x, rank * share, share), y: tf.slice(y, rank * share, share) };
  const lossOf = (model, batch) => () =>
    tf.losses.meanSquaredError(batch.y, model.apply(batch.x, { training: true }));
  const steps = 3;
  const trainAlone = (args) => {
    const model = makeModel(args);
    const optimizer = tf.train.sgd(0.02);
    for (let step = 0; step < steps; ++step) {
      optimizer.minimize(lossOf(model, { x, y }), false, model.trainableWeights.map((one) => one.read()));
    }
    return model;
  };
  const trainTogether = async (model) => {
    const ddp = await training.DistributedDataParallel.create(model, comm, { bucketCapBytes: 64 });
    const optimizer = tf.train.sgd(0.02);
    for (let step = 0; step < steps; ++step) (await ddp.step(optimizer, lossOf(model, mine))).dispose();
    return model;
  };
`;

async function run(size: number, body: string): Promise<readonly (readonly unknown[])[]> {
  const ended = await scripts.runRanks(
    size,
    `${setting} ${body} await statistics.close(); await comm.close();`,
  );
  ended.forEach((one) => expect(one).toMatchObject(well));
  return ended.map(({ reports }) => reports);
}

describe.each([2, 4])('%d ranks', (size) => {
  it('follow one with all samples, moving averages included', async () => {
    const reports = await run(
      size,
      `
      const alone = trainAlone();
      const expected = valuesOf(alone);
      const model = await training.convertSyncBatchNormalization(makeModel(), statistics);
      await trainTogether(model);
      report(farthest(valuesOf(model), expected));
      report(farthest([...model.predict(x).dataSync()], [...alone.predict(x).dataSync()]));
      // So that the figures above mean something: a rank that sees its own batch alone.
      report(farthest(valuesOf(await trainTogether(makeModel())), expected));
      report(farthest(valuesOf(makeModel()), expected));

      // Blocking, on the very communicator that reduces gradients.
      const fitted = await training.convertSyncBatchNormalization(makeModel(), comm);
      const optimizer = new training.DistributedOptimizer(tf.train.sgd(0.02), comm);
      fitted.compile({ optimizer, loss: 'meanSquaredError' });
      await fitted.fit(mine.x, mine.y, { batchSize: share, epochs: steps, verbose: 0, shuffle: false });
      report(farthest(valuesOf(fitted), expected));
      `,
    );
    for (const [weights, predicted, own, untrained, fitted] of reports as number[][]) {
      expect(weights).toBeLessThan(1e-4);
      expect(predicted).toBeLessThan(1e-4);
      expect(own).toBeGreaterThan(1e-2);
      expect(untrained).toBeGreaterThan(1e-2);
      expect(fitted).toBeLessThan(1e-4);
    }
  });

  it('gradients of inputs, with batches of other lengths on each rank', async () => {
    const reports = await run(
      size,
      `
      // Rank r has 2r + 1 samples, but the last one none.
      const lengths = Array.from({ length: size }, (_, r) => (r === size - 1 ? 0 : 2 * r + 1));
      const total = lengths.reduce((sum, one) => sum + one, 0);
      const from = lengths.slice(0, rank).reduce((sum, one) => sum + one, 0);
      const far = [];
      for (const [center, scale] of [[true, true], [false, true], [true, false], [false, false]]) {
        const shape = [total, 3, 2];
        const all = tf.tensor3d(numbers(6 * total, 0.7).map((v, i) => 100 + v + (i % 5)), shape);
        const weights = tf.tensor3d(numbers(6 * total, 1.9), shape);
        const layer = new training.SyncBatchNormalization({
          axis: 1, center, scale, epsilon: 0.01, communicator: statistics, inputShape: [3, 2],
        });
        layer.build([null, 3, 2]);
        const factor = scale ? tf.tensor1d(numbers(3, 0.4)) : tf.ones([3]);
        const offset = center ? tf.tensor1d(numbers(3, 0.9)) : tf.zeros([3]);
        layer.setWeights([
          ...(scale ? [factor] : []), ...(center ? [offset] : []), tf.zeros([3]), tf.ones([3]),
        ]);
        const wide = (one) => tf.reshape(one, [1, 3, 1]);
        const reference = (input) => {
          const { mean, variance } = tf.moments(input, [0, 2], true);
          const hat = tf.div(tf.sub(input, mean), tf.sqrt(tf.add(variance, 0.01)));
          return tf.add(tf.mul(hat, wide(factor)), wide(offset));
        };
        const sum = (f, w) => (input) => tf.sum(tf.mul(tf.square(f(input)), w));
        const part = (one) => [...one.dataSync()].slice(6 * from, 6 * (from + lengths[rank]));
        const own = lengths[rank] === 0
          ? tf.tensor3d([], [0, 3, 2]) : tf.slice(all, [from, 0, 0], [lengths[rank], 3, 2]);
        const ownWeights = lengths[rank] === 0
          ? tf.tensor3d([], [0, 3, 2]) : tf.slice(weights, [from, 0, 0], [lengths[rank], 3, 2]);
        if (lengths[rank] === 0) {
          // Nothing to sum up: the gradient is asked for as the others' is.
          const [dx] = tf.grads((input) => layer.call(input, { training: true }))([own], own);
          far.push(dx.size);
          continue;
        }
        const got = tf.valueAndGrad(sum((input) => layer.call(input, { training: true }), ownWeights))(own);
        const wanted = tf.valueAndGrad(sum(reference, weights))(all);
        far.push(farthest([...got.grad.dataSync()], part(wanted.grad)));
      }
      report(far);
      `,
    );
    for (const [far] of reports as number[][][]) {
      expect(far).toHaveLength(4);
      for (const one of far!) expect(one).toBeLessThan(2e-3);
    }
  });
});

it('is saved and loaded, whole, and says what is missing', async () => {
  const reports = await run(
    2,
    `
    const model = await training.convertSyncBatchNormalization(makeModel({ scale: false }), statistics);
    let saved;
    await model.save({ save: async (artifacts) => ((saved = artifacts), { modelArtifactsInfo: {} }) });
    const loaded = await layers.loadLayersModel({ load: async () => saved });
    report(farthest(valuesOf(loaded), valuesOf(makeModel({ scale: false }))));
    const sync = loaded.layers.filter((one) => one instanceof training.SyncBatchNormalization);
    report(sync.map(({ momentum, epsilon, axis, scale, communicator }) =>
      [momentum, epsilon, axis, scale, communicator === undefined]));
    // Outside training nobody is needed.
    report(farthest([...loaded.predict(x).dataSync()], [...makeModel({ scale: false }).predict(x).dataSync()]));
    report(await outcome((async () => loaded.apply(x, { training: true }))()));
    report(training.useSyncBatchNormalization(loaded, statistics));
    loaded.apply(mine.x, { training: true });
    report(await outcome(training.DistributedDataParallel.create(loaded, comm, { uneven: true })));

    // Nothing is left behind by a pass.
    const pass = () => tf.dispose(tf.variableGrads(lossOf(loaded, mine)));
    pass();
    const before = tf.memory().numTensors;
    pass();
    report(tf.memory().numTensors - before);
    `,
  );
  for (const [weights, read, predicted, missing, named, uneven, left] of reports) {
    expect(weights).toBe(0);
    expect(read).toEqual([
      [0.8, 1e-3, -1, false, true],
      [0.8, 1e-3, 1, false, true],
    ]);
    expect(predicted).toBeLessThan(1e-6);
    expect(missing).toMatchObject({ code: 'ERR_UNSUPPORTED' });
    expect(named).toBe(2);
    expect(uneven).toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    expect(left).toBe(0);
  }
});

it('a rank that is lost ends the forward pass of the others', async () => {
  const ranks = scripts.startRanks(
    2,
    `${setting}
    const layer = new training.SyncBatchNormalization({ communicator: statistics });
    const call = async () => layer.apply(tf.ones([2, 3]), { training: true });
    await call();
    say('called');
    if (rank === 1) await new Promise(() => setInterval(() => undefined, 1000));
    report(await outcome(call()));
    process.exit(0);`,
  );
  await Promise.all(ranks.map((one) => one.said('called')));
  ranks[1]!.child.kill('SIGKILL');
  const { reports } = await ranks[0]!.ended;
  expect(reports).toMatchObject([{ code: 'ERR_PEER_LOST', rank: 1 }]);
});
