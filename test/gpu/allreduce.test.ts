// Stores without servers whose devices are GPUs, in jobs of real processes.

import { afterEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { runJob } from '../distributed/support.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { well } from '../support/processes.js';

const present = gpuDevices().length;
/** Two devices a worker, on as many GPUs as there are. */
const names = [0, 1].map((index) => `gpu:${index % present}`);
const library = new URL('../../dist/index.js', import.meta.url).href;
const size = { workers: 2, servers: 0 };

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** In every worker: a store, and arrays, one for each of its devices. */
const aStore = (options = '') => `
  import { createOptimizer } from ${JSON.stringify(library)};
  const names = ${JSON.stringify(names)};
  const kv = await KVStore.create('allreduce', { devices: names, ${options} });
  const buffers = (dtype, arrays) => Promise.all(names.map(async (name, index) => {
    const buffer = DeviceBuffer.alloc(Number(name.slice(4)), dtype, arrays[index].length);
    await buffer.copyFrom(arrays[index]);
    return buffer;
  }));
  const zeros = (length) => buffers('float32', names.map(() => new Float32Array(length)));
  const read = (made) => Promise.all(made.map((buffer) => buffer.copyTo()));
  const count = 20_003;
  // Eighths: their sums are exact in any order.
  const gradient = (round, device) =>
    Float32Array.from({ length: count }, (_, i) => (((i * 7 + round * 3 + device * 5) % 33) - 16) / 8);
  const weights = () => Float32Array.from({ length: count }, (_, i) => ((i % 19) - 9) / 4);
  const bits = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
`;

/** LAMB needs a norm of the whole key. */
const ways = [
  { options: '', optimizers: ['sgd', 'adam', 'lamb'] },
  { options: 'shardOptimizer: true', optimizers: ['sgd', 'adam'] },
];

describe('an allreduce store on GPUs', () => {
  it.each(ways)('steps as one store of all devices does, $options', async (way) => {
    const { workers } = await runJob(
      scripts,
      size,
      `${aStore(way.options)}
      report([kv.type, kv.numWorkers, kv.devices]);
      for (const optimizer of ${JSON.stringify(way.optimizers)}) {
        const one = await KVStore.create('device', { devices: 4 });
        for (const store of [kv, one]) {
          await store.init(optimizer, weights());
          await store.setOptimizer(createOptimizer(optimizer, { learningRate: 0.01 }));
          await store.setLearningRate(0.02);
        }
        const outs = await zeros(count);
        const expected = new Float32Array(count);
        let same = true;
        for (let round = 0; round < 3; ++round) {
          await kv.push(optimizer, await buffers('float32', [0, 1].map((i) => gradient(round, 2 * kv.rank + i))));
          await kv.pull(optimizer, outs);
          await one.push(optimizer, [0, 1, 2, 3].map((device) => gradient(round, device)));
          await one.pull(optimizer, expected);
          for (const out of await read(outs)) same &&= bits(out).equals(bits(expected));
        }
        report([optimizer, same, expected.some((value, i) => value !== weights()[i])]);
        await one.close();
      }
      await kv.close();`,
      scripts.env(),
    );
    const all = way.optimizers.map((optimizer) => [optimizer, true, true]);
    for (const worker of workers) {
      expect(worker).toMatchObject({ ...well, reports: [['allreduce', 2, names], ...all] });
    }
    scripts.expectNothingLeft();
  });
});
