#!/usr/bin/env node
// Gradients crossing from TensorFlow each by itself, or a bucket's at once: what a step takes, reads and hides, in turns on
// the same model, batch and data. One worker of a job:
//
//   gradlink launch -n 2 node lab/peers/training/gathering.js [--models lenet,resnet20] [--steps N] [--batch-size N]
//
// tfjs-node is taken from build/tfjs-node (bash scripts/tfjs-node.sh) or from the folder that --tfjs-node names.
import { createRequire } from 'node:module';
import { resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import * as tf from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';

import { Communicator } from '../../../dist/index.js';
import { buildModel, DistributedDataParallel, modelNames } from '../../../dist/tfjs.js';

const { values } = parseArgs({
  options: {
    models: { type: 'string', default: 'lenet,resnet20,mobilenetv2' },
    steps: { type: 'string', default: '20' },
    'batch-size': { type: 'string', default: '8' },
    'tfjs-node': {
      type: 'string',
      default: fileURLToPath(new URL('../../../build/tfjs-node/', import.meta.url)),
    },
  },
});
const steps = count('steps');
const batch = count('batch-size');
const models = values.models.split(',');
for (const name of models) {
  if (!modelNames.includes(name)) {
    fail(`expected names of ${modelNames.join(', ')} for --models, got ${name}`);
  }
}

function fail(text) {
  console.error(text);
  process.exit(2);
}

function count(name) {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= 1) return value;
  return fail(`expected an integer of at least 1 for --${name}, got ${values[name]}`);
}

// It registers its backend with the one engine of the process.
createRequire(`${resolve(values['tfjs-node'])}${sep}`)('@tensorflow/tfjs-node');
await tf.setBackend('tensorflow');
await tf.ready();

const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
const milliseconds = (numbers) => `${(1e3 * median(numbers)).toFixed(2)} ms`;

/** How often a tensor was read, while `body` ran. */
async function readsOf(body) {
  const backend = tf.backend();
  const { readSync } = backend;
  let reads = 0;
  backend.readSync = function (id) {
    reads += 1;
    return readSync.call(this, id);
  };
  try {
    await body();
  } finally {
    backend.readSync = readSync;
  }
  return reads;
}

async function compare(name, world) {
  const model = buildModel({ core: tf, layers }, name);
  const [, ...shape] = model.inputs[0].shape;
  const classes = model.outputs[0].shape[1];
  const x = tf.randomUniform([batch, ...shape], 0, 1, 'float32', world.rank + 1);
  const y = tf.oneHot(
    tf.tensor1d(
      Int32Array.from({ length: batch }, (_, i) => (i + world.rank) % classes),
      'int32',
    ),
    classes,
  );
  const loss = () => tf.losses.softmaxCrossEntropy(y, model.apply(x, { training: true }));
  const optimizer = tf.train.sgd(0.01);
  const ways = [];
  for (const gather of [false, true]) {
    const ddp = await DistributedDataParallel.create(model, await world.split(0, world.rank), {
      gather,
    });
    ways.push({ gather, ddp, seconds: [], copies: [], waits: [], reads: 0 });
  }
  for (let step = -3; step < steps; ++step) {
    for (const way of ways) {
      await world.barrier();
      const begin = performance.now();
      way.reads = await readsOf(async () => {
        const tensor = await way.ddp.step(optimizer, loss);
        tensor.dispose();
      });
      if (step < 0) continue;
      way.seconds.push((performance.now() - begin) / 1e3);
      way.copies.push(way.ddp.times.copySeconds);
      way.waits.push(way.ddp.times.waitSeconds);
    }
  }
  const bytes = 4 * model.trainableWeights.reduce((sum, { val }) => sum + val.size, 0);
  return ways.map(({ gather, seconds, copies, waits, reads }) => [
    name,
    gather ? 'a bucket at once' : 'each by itself',
    String(reads),
    `${(bytes / 2 ** 20).toFixed(1)} MiB`,
    milliseconds(seconds),
    milliseconds(copies),
    milliseconds(waits),
  ]);
}

const world = await Communicator.world();
const rows = [['model', 'gradients cross', 'reads', 'bytes', 'step', 'copying', 'not hidden']];
for (const name of models) rows.push(...(await compare(name, world)));
if (world.rank === 0) {
  const where = tf.backend().isUsingGpuDevice ? 'GPUs' : 'CPUs';
  console.log(
    `${world.size} workers on ${where}, batch ${batch}, medians of ${steps} steps in turns`,
  );
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  for (const row of rows)
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    );
}
await world.close();
