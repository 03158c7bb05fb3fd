// One rank of lab/job/run.js: trains from the last checkpoint, or from the start, to the end. Rank 0 prints a line of JSON
// for whatever happens.
//
//   node lab/job/rank.js LENGTH FOLDER     LENGTH: whole or quick; FOLDER: of the checkpoints, which all hosts see
import * as tf from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import { Communicator } from 'gradlink';
import {
  Batches,
  DistributedDataParallel,
  loadCheckpoint,
  saveCheckpoint,
  useBackend,
} from 'gradlink/tfjs';
import { globalBatch, lengths, logEvery, makeData, rateAt, shape } from './settings.js';

const [length, folder] = process.argv.slice(2);
const { steps, saveEvery } = lengths[length];
/** What a checkpoint must be of. */
const labels = { program: 'lab/job', length };

await useBackend('wasm');
// The launcher starts ranks by mpirun; what they send to one another goes over TCP.
const comm = await Communicator.world({ backend: 'tcp' });
const { rank, size } = comm;
const tell = (event, more) => {
  if (rank === 0) console.log(JSON.stringify({ event, ...more }));
};

const { train, held } = makeData();
const batches = new Batches(train, { batchSize: globalBatch / size, rank, size, seed: 1 });
const model = network();
const ddp = await DistributedDataParallel.create(model, comm);
const optimizer = tf.train.momentum(rateAt(0, steps), 0.9);
const begin = await resume();
tell('begin', { ranks: size, ...begin });

let samples = begin.samples;
let lossSum = 0;
let seconds = 0;
for (let step = begin.step + 1; step <= steps; ++step) {
  const start = performance.now();
  optimizer.setLearningRate(rateAt(step, steps));
  const { x, y } = tensors(batches.at(samples));
  const loss = await ddp.step(optimizer, () => tf.losses.softmaxCrossEntropy(y, model.apply(x)));
  lossSum += loss.dataSync()[0];
  tf.dispose([x, y, loss]);
  samples += batches.samplesPerStep;
  seconds += (performance.now() - start) / 1000;
  if (step % logEvery === 0) {
    const [sum] = await comm.allReduce(Float64Array.of(lossSum), { op: 'avg' });
    tell('step', { step, samples, loss: sum / logEvery, seconds: seconds / logEvery });
    [lossSum, seconds] = [0, 0];
  }
  if (step % saveEvery === 0) {
    const accuracy = await measureAccuracy();
    await saveCheckpoint(folder, comm, { step, samplesSeen: samples, labels }, await arrays());
    tell('saved', { step, samples, accuracy });
  }
}
await comm.close();

function network() {
  const { conv2d, dense, flatten } = layers.layers;
  const [first, second, third, fourth] = [1, 2, 3, 4].map((seed) => ({
    kernelInitializer: layers.initializers.glorotUniform({ seed }),
  }));
  const convolution = { activation: 'relu', padding: 'same' };
  return layers.sequential({
    layers: [
      conv2d({
        inputShape: shape,
        filters: 16,
        kernelSize: 4,
        strides: 4,
        ...convolution,
        ...first,
      }),
      conv2d({ filters: 24, kernelSize: 3, strides: 2, ...convolution, ...second }),
      flatten(),
      dense({ units: 32, activation: 'relu', ...third }),
      dense({ units: train.classes, ...fourth }),
    ],
  });
}

function tensors({ inputs, labels: own }) {
  return tf.tidy(() => ({
    x: tf.tensor(inputs, [own.length, ...shape]),
    y: tf.oneHot(tf.tensor1d(own, 'int32'), train.classes),
  }));
}

/** Of the samples that are not trained on: each rank looks at its part of them. */
async function measureAccuracy() {
  const part = new Batches(held, { batchSize: held.samples / size, rank, size }).at(0);
  const guessed = tf.tidy(() =>
    tf.argMax(model.predict(tf.tensor(part.inputs, [part.labels.length, ...shape])), 1).dataSync(),
  );
  const own = guessed.filter((label, i) => label === part.labels[i]).length;
  const [right] = await comm.allReduce(Float64Array.of(own));
  return right / held.samples;
}

/** What the run goes on from: the weights, and what the optimizer remembers of the gradients. */
async function arrays() {
  const weights = model.getWeights().map((tensor, index) => ({
    name: `model/${index}`,
    shape: tensor.shape,
    data: tensor.dataSync().slice(),
  }));
  return [...weights, ...(await ddp.optimizerState(optimizer))];
}

async function resume() {
  const found = await loadCheckpoint(folder, comm, labels);
  if (found === undefined) return { step: 0, samples: 0 };
  const { checkpoint, arrays: kept } = found;
  const weights = kept.filter(({ name }) => name.startsWith('model/'));
  const values = weights.map(({ data, shape: own }) => tf.tensor(data, own));
  model.setWeights(values);
  tf.dispose(values);
  ddp.setOptimizerState(optimizer, kept);
  return { step: checkpoint.step, samples: checkpoint.samplesSeen, from: checkpoint.size };
}
