// Run: npx gradlink launch -n 2 node examples/data-parallel.js
import * as tf from '@tensorflow/tfjs-core';
import { Communicator } from 'gradlink';
import { DistributedOptimizer, broadcastVariables, useBackend } from 'gradlink/tfjs';

await useBackend('cpu');
const comm = await Communicator.world();
const w = tf.variable(tf.scalar(comm.rank), true, 'w');
await broadcastVariables([w], comm); // all start from rank 0's
const target = comm.rank * 2; // the best for both ranks is 1
const optimizer = new DistributedOptimizer(tf.train.sgd(0.1), comm); // averages the gradients
for (let step = 0; step < 50; step += 1)
  await optimizer.minimize(() => tf.square(tf.sub(w, target)));
if (comm.rank === 0) console.log(w.dataSync()[0].toFixed(2));
await comm.close();
// Prints: 1.00
