// Run: node examples/networks.js
import * as tf from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import { buildModel, registerGradientKernels, useBackend } from 'gradlink/tfjs';

await useBackend('wasm'); // useBackend registers them too; this is for a backend set by other means
registerGradientKernels(tf.getBackend());
const model = buildModel({ core: tf, layers }, 'lenet', { classes: 10, seed: 1 });
const images = tf.zeros([2, ...model.inputs[0].shape.slice(1)]);
const { grads } = tf.variableGrads(() => tf.sum(model.predict(images)));
console.log(`${model.countParams()} parameters, ${Object.keys(grads).length} gradients`);
// Prints: 62006 parameters, 10 gradients
