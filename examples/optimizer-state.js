// Run: npx gradlink launch -n 2 node examples/optimizer-state.js
import * as tf from '@tensorflow/tfjs-core';
import { Communicator } from 'gradlink';
import { broadcastOptimizerState, useBackend } from 'gradlink/tfjs';

await useBackend('cpu');
const comm = await Communicator.world();
const w = tf.variable(tf.scalar(1), true, 'w');
const optimizer = tf.train.momentum(0.1, 0.9);
if (comm.rank === 0) optimizer.minimize(() => tf.square(w)); // only rank 0 has made a step
await broadcastOptimizerState(optimizer, comm);
const [steps, momentum] = await optimizer.getWeights();
if (comm.rank === 1) console.log(steps.tensor.dataSync(), momentum.tensor.dataSync());
await comm.close();
// Prints: Int32Array(1) [ 1 ] Float32Array(1) [ 2 ]
