// Run: node examples/data.js
import { Batches, bucketLimits, openDataset, planBuckets } from 'gradlink/tfjs';

const dataset = openDataset('mnist', { samples: 64, seed: 1 }); // made up, in the shape of MNIST
const batches = new Batches(dataset, { batchSize: 8, rank: 1, size: 2 }); // the second rank's share
console.log(batches.samplesPerStep, batches.at(0).labels.length);
const gradients = [{ shape: [1000, 1000] }, { shape: [1000] }];
console.log(planBuckets(gradients, bucketLimits({ bucketCapBytes: 1e6 })).length, 'bucket');
// Prints: 16 8
// Prints: 1 bucket
