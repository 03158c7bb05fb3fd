// One worker of `gradlink launch -n WORKERS -s 1`: pushes and pulls all keys at once, again and again. Worker 0 prints seconds
// of one round, a value a sample.
//
//   worker.js KEYS BYTES ROUNDS     BYTES: of each key
import { KVStore } from '../../dist/index.js';

const [count, bytes, rounds] = process.argv.slice(2).map(Number);
const store = await KVStore.create('dist_sync', { devices: 1 });
const keys = Array.from({ length: count }, (_, i) => `key ${i}`);
const values = keys.map((_, k) => [new Float32Array(bytes / 4).fill(1 + (k % 7))]);
const outs = keys.map(() => [new Float32Array(bytes / 4)]);
await store.init(
  keys,
  outs.map(([out]) => out),
);
const once = () => Promise.all([store.push(keys, values), store.pull(keys, outs)]);
const warm = 2;
const samples = [];
// As many rounds on every worker: a round ends for all of them together.
for (let i = 0; i < warm + rounds; i += 1) {
  const start = performance.now();
  await once();
  if (i >= warm) samples.push((performance.now() - start) / 1e3);
}
if (store.rank === 0) console.log(JSON.stringify({ seconds: samples }));
await store.close();
