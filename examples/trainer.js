// Run: node examples/trainer.js
import * as tf from '@tensorflow/tfjs-core';
import { KVStore, SGD } from 'gradlink';
import { KVStoreTrainer, useBackend } from 'gradlink/tfjs';

await useBackend('cpu');
const w = tf.variable(tf.scalar(5), true, 'w');
const kv = await KVStore.create('device'); // 'dist_sync' in a job: the same program
const optimizer = new SGD({ learningRate: 0.1 });
const trainer = await KVStoreTrainer.create([w], kv, { optimizer });
for (let step = 0; step < 50; step += 1)
  tf.dispose(await trainer.step(() => tf.square(tf.sub(w, 1))));
console.log(w.dataSync()[0].toFixed(2));
await kv.close();
// Prints: 1.00
