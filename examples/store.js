// Run: node examples/store.js
import { KVStore, SGD } from 'gradlink';

const kv = await KVStore.create('device', { devices: 2 });
await kv.init('weight', new Float32Array(4).fill(1));
await kv.setOptimizer(new SGD({ learningRate: 0.5, wd: 0 }));
await kv.push('weight', [new Float32Array(4).fill(0.5), new Float32Array(4).fill(0.5)]);
const weights = [new Float32Array(4), new Float32Array(4)]; // one a device
await kv.pull('weight', weights);
console.log(weights[1].join(' ')); // 1 - 0.5 * (0.5 + 0.5)
await kv.close();
// Prints: 0.5 0.5 0.5 0.5
