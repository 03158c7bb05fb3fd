// Run: node examples/forecast.js
import { plainLink, predict } from 'gradlink/measure';

const inside = plainLink(20e-6, 3.1e9); // 20 us and 3.1 GB/s between all workers
const layer = { forwardSeconds: 0.06, backwardSeconds: 0.12, sigmaSeconds: 0 };
const workload = { ...layer, gradientBytes: [1e8], bucketBytes: 25e6, overlap: true };
const { steps } = predict({ workload, inside, workers: [8], schemes: ['ring', 'one-peer'] });
for (const { scheme, efficiency } of steps)
  console.log(`${scheme} ~${efficiency.value.toFixed(2)}`);
// Prints: ring ~0.76
// Prints: one-peer ~0.85
