// Run: node examples/training-names.js
import { backendNames, bucketHooks, datasetNames, modelKinds, modelNames } from 'gradlink/tfjs';
import { timelineLanes } from 'gradlink/tfjs';

console.log('networks:', modelNames.join(', '));
console.log('data sets:', datasetNames.join(', '));
console.log('backends:', backendNames.join(', '));
console.log('compression in buckets:', bucketHooks.join(', '));
console.log('lanes of a timeline:', timelineLanes.join(', '));
console.log(`resnet50 takes ${modelKinds.resnet50.inputShape}`);
// Prints: networks: resnet20, resnet50, mobilenetv2, lenet, mlp, bert-tiny
// Prints: data sets: cifar10, imagenet, mnist, tokens
// Prints: backends: node-gpu, node, wasm, cpu
// Prints: compression in buckets: float16, bfloat16, 2bit, powersgd
// Prints: lanes of a timeline: compute, communication
// Prints: resnet50 takes 32,32,3
