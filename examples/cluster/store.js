// A worker of servers.yaml: the servers sum what the workers push, and keep the weights.
import { hostname } from 'node:os';

import { KVStore, SGD } from 'gradlink';

// Pods start when they have their images: the first of them waits for the last.
const kv = await KVStore.create('dist_sync', { startTimeoutMs: 600_000 });
const weights = new Float32Array(1 << 21);
await kv.init('weights', weights);
await kv.setOptimizer(new SGD({ learningRate: 0.125 }));
for (let step = 0; step < 10; step += 1) {
  const gradients = new Float32Array(weights.length).fill(kv.rank + 1);
  await kv.pushPull('weights', gradients, weights);
}
console.log(`worker ${kv.rank} of ${kv.numWorkers} on ${hostname()}: weight ${weights[0]}`);
await kv.close();
