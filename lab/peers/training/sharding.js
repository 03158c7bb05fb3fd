#!/usr/bin/env node
// Steps of Adam on every rank, or shared by the ranks: what an optimizer keeps on a rank, and what a step takes, in turns. Its
// loss is a sum of the variables, whose gradient costs next to nothing: the rest of a step is what differs. One worker of a
// job:
//
//   gradlink launch -n 2 node lab/peers/training/sharding.js [--models mlp,mobilenetv2] [--steps N]
import { parseArgs } from 'node:util';

import * as tf from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';

import { Communicator } from '../../../dist/index.js';
import { buildModel, DistributedDataParallel, modelNames, useBackend } from '../../../dist/tfjs.js';

const { values } = parseArgs({
  options: {
    models: { type: 'string', default: 'mlp,mobilenetv2' },
    steps: { type: 'string', default: '20' },
  },
});
const steps = Number(values.steps);
const models = values.models.split(',');
if (!(Number.isInteger(steps) && steps >= 1 && models.every((name) => modelNames.includes(name)))) {
  console.error(`expected --steps of at least 1 and --models of ${modelNames.join(', ')}`);
  process.exit(2);
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

async function compare(name, world) {
  const ways = [];
  for (const shard of [false, true]) {
    const model = buildModel({ core: tf, layers }, name);
    const comm = await world.split(0, world.rank);
    const ddp = await DistributedDataParallel.create(model, comm, { shard });
    const loss = () => tf.addN(ddp.variables.map((one) => tf.mean(one)));
    ways.push({ shard, ddp, loss, optimizer: tf.train.adam(), seconds: [], bytes: 0 });
  }
  for (let step = -3; step < steps; ++step) {
    for (const way of ways) {
      await world.barrier();
      const before = tf.memory().numBytes;
      const begin = performance.now();
      (await way.ddp.step(way.optimizer, way.loss)).dispose();
      if (step >= 0) way.seconds.push(performance.now() - begin);
      // What the first step leaves is what the optimizer keeps.
      way.bytes += tf.memory().numBytes - before;
    }
  }
  const kept = await Promise.all(
    ways.map(({ bytes }) => world.allGather(Float64Array.of(bytes / 2 ** 20))),
  );
  return ways.map(({ shard, seconds }, i) => {
    const each = [...kept[i]].map((one) => one.toFixed(1)).join(', ');
    const way = shard ? 'shared' : 'on every rank';
    return [name, String(world.size), way, `${each} MiB`, `${median(seconds).toFixed(1)} ms`];
  });
}

await useBackend('wasm');
const world = await Communicator.world();
for (const name of models) {
  for (const row of await compare(name, world)) if (world.rank === 0) console.log(row.join('  '));
}
await world.close();
