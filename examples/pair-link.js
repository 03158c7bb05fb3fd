// Run: node examples/pair-link.js
import { linkOfPair, plainLink, predict, targetEfficiency } from 'gradlink/measure';

const compute = { forwardSeconds: 0.06, backwardSeconds: 0.12, sigmaSeconds: 0 };
const workload = { ...compute, gradientBytes: [1e8], bucketBytes: 25e6, overlap: true };
const inside = plainLink(1e-5, 1e10); // 10 us and 10 GB/s inside a host
const pair = { workload, perHost: 1, inside, stepSeconds: 0.2, scheme: 'ring' }; // two hosts take 200 ms
const between = linkOfPair(pair); // the network that explains it
const forecast = { workload, inside, between, perHost: 1, workers: [2] };
const { efficiency } = predict({ ...forecast, schemes: ['ring'] }).steps[0];
console.log(efficiency.value.toFixed(2), efficiency.value >= targetEfficiency ? 'pays' : 'costs');
// Prints: 0.90 pays
