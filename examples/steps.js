// Run: node examples/steps.js
import { bucketsOf, exchangeSeconds, plainLink, predictCurve, schemes } from 'gradlink/measure';
import { publishedTables, stepTime, validatePublished } from 'gradlink/measure';

const layer = { forwardSeconds: 0.06, backwardSeconds: 0.12, sigmaSeconds: 0, overlap: true };
const workload = { ...layer, gradientBytes: [4e7, 6e7], bucketBytes: 5e7 };
console.log(bucketsOf(workload).length, 'buckets', schemes.includes('ring'));
const inside = plainLink(20e-6, 3e9); // 20 us and 3 GB/s between all workers
const cluster = { workers: 8, perHost: 8, inside, between: inside, servers: 1, rails: 1 };
const exchange = (bytes) => exchangeSeconds('ring', bytes, cluster);
console.log(stepTime(workload, 8, exchange).stepSeconds.toFixed(3), 's a step');
const steps = [1, 2, 4].map((workers) => ({ workers, hosts: 1, stepSeconds: 1 + workers / 100 }));
console.log(predictCurve(steps, { workers: 8, hosts: 1 }).stepSeconds.toFixed(2), 's with 8');
console.log(validatePublished(publishedTables[0]).length, 'checks against a published table');
// Prints: 2 buckets true
// Prints: 0.204 s a step
// Prints: 1.08 s with 8
// Prints: 3 checks against a published table
