// One rank of lab/convergence/run.js: trains with every method from several seeds; the first rank prints the curves.
import * as tf from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import { Communicator, KVStore, SGD } from 'gradlink';
import {
  Batches,
  broadcastVariables,
  DistributedOptimizer,
  KVStoreTrainer,
  useBackend,
} from 'gradlink/tfjs';
import { learnable } from '../learnable.js';

/** What all ranks' batches have together: the same for one worker as for four. */
const globalBatch = 64;
/** Proves that it runs, and little more. */
const quick = process.argv.includes('--quick');
const steps = quick ? 24 : 120;
const every = 6;
const learningRate = 0.1;
const seeds = quick ? [1] : [1, 2, 3];

const sets = {
  'MNIST-like': { shape: [28, 28, 1], signal: 0.15 },
  'CIFAR-10-like': { shape: [32, 32, 3], signal: 0.09 },
};

await useBackend('wasm');
const comm = await Communicator.world();
const { rank, size } = comm;
const store = await KVStore.create('dist_sync');
let trainings = 0;

/** For each method what makes a step. */
const wrapped = (options) => async (model) => {
  const optimizer = new DistributedOptimizer(tf.train.sgd(learningRate), comm, options);
  await broadcastVariables(model, comm);
  const variables = model.trainableWeights.map((one) => one.read());
  return (loss) => optimizer.minimizeAsync(loss, true, variables);
};
const methods = {
  'all-reduce': wrapped({ algorithm: 'gradient-allreduce' }),
  'neighbour averaging': wrapped({ algorithm: 'adapt-with-combine' }),
  'local SGD': wrapped({ algorithm: 'local-sgd', stepsPerCommunication: 4 }),
  store: async (model) => {
    // A store has one optimizer, and keys are made once.
    const trainer = await KVStoreTrainer.create(model, store, {
      optimizer: new SGD({ learningRate, wd: 0 }),
      prefix: `${++trainings}-`,
    });
    return (loss) => trainer.step(loss);
  },
};

/** One hidden layer: training takes seconds, and most of them are the ranks' meetings. */
function network(inputShape, seed) {
  const kernelInitializer = layers.initializers.glorotUniform({ seed });
  return layers.sequential({
    layers: [
      layers.layers.flatten({ inputShape }),
      layers.layers.dense({ units: 32, activation: 'relu', kernelInitializer }),
      layers.layers.dense({ units: 10, kernelInitializer }),
    ],
  });
}

function tensors({ inputs, labels }, shape) {
  return tf.tidy(() => ({
    x: tf.tensor(inputs, [labels.length, ...shape]),
    y: tf.oneHot(tf.tensor1d(labels, 'int32'), 10),
  }));
}

for (const [set, spec] of Object.entries(sets).slice(0, quick ? 1 : undefined)) {
  for (const seed of seeds) {
    const { train, held } = learnable(spec);
    const batches = new Batches(train, { batchSize: globalBatch / size, rank, size, seed });
    const read = Array.from({ length: steps }, (_, i) => batches.at(i * globalBatch));
    for (const [method, make] of Object.entries(methods)) {
      const model = network(spec.shape, seed);
      const step = await make(model);
      const curve = [];
      let sum = 0;
      for (let i = 0; i < steps; ++i) {
        const { x, y } = tensors(read[i], spec.shape);
        const loss = await step(() => tf.losses.softmaxCrossEntropy(y, model.apply(x)));
        sum += loss.dataSync()[0];
        tf.dispose([x, y, loss]);
        if ((i + 1) % every !== 0) continue;
        const [total] = await comm.allReduce(Float64Array.of(sum), { op: 'avg' });
        curve.push([(i + 1) * globalBatch, total / every]);
        sum = 0;
      }
      const batch = new Batches(held, { batchSize: held.samples }).at(0);
      const { x, y } = tensors(batch, spec.shape);
      const guessed = tf.tidy(() => tf.argMax(model.predict(x), 1)).dataSync();
      const right = guessed.filter((label, i) => label === batch.labels[i]).length / held.samples;
      const [accuracy] = await comm.allReduce(Float64Array.of(right), { op: 'avg' });
      if (rank === 0)
        console.log(JSON.stringify({ set, method, workers: size, seed, accuracy, curve }));
      tf.dispose([x, y]);
      model.dispose();
    }
  }
}
await store.close();
await comm.close();
