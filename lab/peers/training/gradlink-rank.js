// One worker of run.js: TensorFlow.js on tfjs-node, gradients averaged by gradlink. With the folder of tfjs-node alone it only
// tries whether that loads.
import { createRequire } from 'node:module';

import * as tf from '@tensorflow/tfjs-core';

import { Communicator } from '../../../dist/index.js';
import { DistributedDataParallel } from '../../../dist/tfjs.js';

const [folder, name, rank, workers, steps] = process.argv.slice(2);
// It registers its backend with the one engine of the process.
createRequire(folder)('@tensorflow/tfjs-node');
await tf.setBackend('tensorflow');
await tf.ready();
if (name !== undefined) await train();

async function train() {
  const comm = await Communicator.join({ name, rank: Number(rank), size: Number(workers) });
  const sizes = [784, 1024, 1024, 10];
  const variables = sizes
    .slice(1)
    .flatMap((outputs, i) => [
      tf.variable(tf.randomUniform([sizes[i], outputs], -0.03, 0.03, 'float32', i)),
      tf.variable(tf.zeros([outputs])),
    ]);
  const batch = 128;
  const x = tf.tensor2d(
    Float32Array.from({ length: batch * 784 }, (_, i) => ((i * 7919 + Number(rank)) % 1000) / 1000),
    [batch, 784],
  );
  const y = tf.oneHot(tf.tensor1d(Int32Array.from({ length: batch }, (_, i) => i % 10)), 10);
  const logits = () => {
    let out = x;
    for (let i = 0; i < variables.length; i += 2) {
      out = tf.add(tf.matMul(out, variables[i]), variables[i + 1]);
      if (i + 2 < variables.length) out = tf.relu(out);
    }
    return out;
  };
  const ddp = await DistributedDataParallel.create(variables, comm);
  const optimizer = tf.train.sgd(0.05);
  const seconds = [];
  let loss = 0;
  for (let step = -10; step < Number(steps); ++step) {
    const begin = performance.now();
    const tensor = await ddp.step(optimizer, () => tf.losses.softmaxCrossEntropy(y, logits()));
    [loss] = tensor.dataSync();
    if (step >= 0) seconds.push((performance.now() - begin) / 1e3);
    tensor.dispose();
  }
  console.log(JSON.stringify({ rank: comm.rank, seconds, loss }));
  await comm.close();
}
