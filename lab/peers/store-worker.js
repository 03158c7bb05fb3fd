// A worker of `gradlink launch -n 1 -s 1`: times a push and a pull of one float32 array through dist_sync, and pairs of many
// small ones. Prints JSON lines.
//
//   store-worker.js BYTES,BYTES,... SECONDS plain|shared     shared: arrays of the store's allocShared
import { KVStore } from '../../dist/index.js';

const [sizes, seconds, arrays] = process.argv.slice(2);
const minSamples = 5;
const maxSamples = 500;
const print = (line) => console.log(JSON.stringify(line));

const store = await KVStore.create('dist_sync', { devices: 1 });
const zeros = (length) =>
  arrays === 'shared' ? store.allocShared('float32', length) : new Float32Array(length);

/** Samples of `once`, about `seconds` long in all. */
async function sample(once) {
  for (let i = 0; i < 3; i += 1) await once();
  const samples = [];
  const end = performance.now() + Number(seconds) * 1000;
  while (samples.length < minSamples || (performance.now() < end && samples.length < maxSamples)) {
    const start = performance.now();
    await once();
    samples.push((performance.now() - start) / 1000);
  }
  return samples;
}

/** Elements that are not what was pushed: a store without an optimizer gives back the sum of one worker. */
function wrongIn(pushed, pulled) {
  return pulled.reduce((wrong, value, i) => wrong + (value === pushed[i] ? 0 : 1), 0);
}

for (const bytes of sizes.split(',').map(Number)) {
  const key = `one of ${bytes}`;
  const value = zeros(bytes / 4);
  for (let i = 0; i < value.length; i += 1) value[i] = i % 1021;
  const out = zeros(value.length);
  await store.init(key, out);
  const samples = await sample(() =>
    Promise.all([store.push(key, [value]), store.pull(key, [out])]),
  );
  print({ bytes, place: 'store', seconds: samples, wrong: wrongIn(value, out) });
}

// Training's many small arrays: all of them on their way at once, in one call. A sample is the time of one pair.
const count = 1000;
const small = 4096;
const keys = Array.from({ length: count }, (_, i) => `small ${i}`);
const values = keys.map((_, k) => [zeros(small / 4).fill(k)]);
const outs = keys.map(() => [zeros(small / 4)]);
await store.init(
  keys,
  outs.map(([out]) => out),
);
const pairs = await sample(() => Promise.all([store.push(keys, values), store.pull(keys, outs)]));
const wrong = outs.reduce((sum, [out], k) => sum + wrongIn(values[k][0], out), 0);
print({ bytes: small, place: 'pairs', seconds: pairs.map((time) => time / count), wrong });
await store.close();
