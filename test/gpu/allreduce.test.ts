// Stores without servers whose devices are GPUs, in jobs of real processes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { runJob } from '../distributed/support.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { well } from '../support/processes.js';

const present = gpuDevices().length;
/** Two devices a worker, on as many GPUs as there are. */
const names = [0, 1].map((index) => `gpu:${index % present}`);
const library = new URL('../../dist/index.js', import.meta.url).href;
const size = { workers: 2, servers: 0 };

let scripts: GpuScripts;
beforeEach(() => {
  scripts = new GpuScripts();
});
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

const optimizers = ['sgd', 'adam', 'lamb'] as const;

describe('an allreduce store on GPUs', () => {
  it('steps as one store of all devices does, to the bit, on every GPU of every worker', async () => {
    const { workers } = await runJob(
      scripts,
      size,
      `${aStore()}
      report([kv.type, kv.numWorkers, kv.devices]);
      for (const optimizer of ${JSON.stringify(optimizers)}) {
        const one = await KVStore.create('device', { devices: 4 });
        for (const store of [kv, one]) {
          await store.init(optimizer, weights());
          await store.setOptimizer(createOptimizer(optimizer, { learningRate: 0.01 }));
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
    const all = optimizers.map((optimizer) => [optimizer, true, true]);
    for (const worker of workers) {
      expect(worker).toMatchObject({ ...well, reports: [['allreduce', 2, names], ...all] });
    }
    scripts.expectNothingLeft();
  });

  it('sums rows alone, and steps as one store of all devices does, to the bit', async () => {
    const { workers } = await runJob(
      scripts,
      size,
      `${aStore()}
      import { RowSparse } from ${JSON.stringify(library)};
      const shape = [4000, 5];
      // A row that all bring, twice of one device, and rows of each device alone.
      const rows = (round, device) => {
        const indices = [17, 3999 - device, round * 7 + device, 17];
        const data = Float32Array.from({ length: 20 }, (_, i) => (((i * 5 + round + device) % 17) - 8) / 8);
        return new RowSparse({ indices: device === 3 ? [] : indices, data: device === 3 ? data.slice(0, 0) : data, shape });
      };
      for (const [optimizer, options] of [['sgd', { momentum: 0.9 }], ['adam', {}], ['sgd', { momentum: 0.9, lazyUpdate: false }], ['groupadagrad', {}]]) {
        const key = optimizer + Object.keys(options).length;
        const one = await KVStore.create('local', { devices: 4 });
        for (const store of [kv, one]) {
          await store.init(key, weights().slice(0, 20_000), { shape });
          await store.setOptimizer(createOptimizer(optimizer, { learningRate: 0.01, ...options }));
        }
        const out = new Float32Array(20_000);
        const expected = new Float32Array(20_000);
        for (let round = 0; round < 3; ++round) {
          kv.push(key, [0, 1].map((i) => rows(round, 2 * kv.rank + i)));
          one.push(key, [0, 1, 2, 3].map((device) => rows(round, device)));
        }
        await kv.pull(key, out);
        await one.pull(key, expected);
        const { worker: before } = await kv.report();
        await kv.push(key, rows(9, kv.rank));
        const { worker: after } = await kv.report();
        report([bits(out).equals(bits(expected)), expected[85] !== weights()[85], after.bytesReduced - before.bytesReduced]);
        await one.close();
      }
      await kv.close();`,
      scripts.env(),
    );
    // Three rows of 20 bytes and their numbers, to cache lines, of 80 kB.
    const expected = [0, 1, 2, 3].map(() => [true, true, 128]);
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports: expected });
    scripts.expectNothingLeft();
  });

  it('steps a part of every key on each worker, to the bit as all of it', async () => {
    const { workers } = await runJob(
      scripts,
      size,
      `${aStore('shardOptimizer: true')}
      report(await outcome(kv.setOptimizer(createOptimizer('lamb'))));
      for (const optimizer of ['sgd', 'adam']) {
        const one = await KVStore.create('device', { devices: 4 });
        for (const store of [kv, one]) {
          await store.init(optimizer, weights());
          await store.setOptimizer(createOptimizer(optimizer, { learningRate: 0.01, wd: 0.1 }));
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
    const refused = {
      code: 'ERR_UNSUPPORTED',
      message: expect.stringMatching(/lamb.*shardOptimizer/) as string,
    };
    const reports = [refused, ['sgd', true, true], ['adam', true, true]];
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
    scripts.expectNothingLeft();
  });

  it('sums every type of element, arrays of the host too', async () => {
    const { workers } = await runJob(
      scripts,
      size,
      `${aStore()}
      const kinds = { float64: Float64Array, int32: Int32Array, uint8: Uint8Array, float16: Uint16Array, bfloat16: Uint16Array };
      // The bit patterns of 1 and 4.
      const one = { float16: 0x3c00, bfloat16: 0x3f80 };
      for (const [dtype, Kind] of Object.entries(kinds)) {
        await kv.init(dtype, new Kind(5), { dtype });
        const values = await buffers(dtype, names.map(() => new Kind(5).fill(one[dtype] ?? 1)));
        await kv.pushPull(dtype, values);
        report((await read(values)).map((array) => array.join()));
      }
      await kv.init('w', new Float32Array(3));
      const [onGpu] = await buffers('float32', names.map(() => Float32Array.of(1, 2, 3)));
      const out = new Float32Array(3);
      await kv.push('w', [onGpu, Float32Array.of(1, 2, 3)]);
      await kv.pull('w', [out, onGpu]);
      report([[...out], [...(await onGpu.copyTo())]]);
      await kv.close();`,
      scripts.env(),
    );
    const each = (four: number): string[] => names.map(() => Array(5).fill(four).join());
    const sums = [each(4), each(4), each(4), each(0x4400), each(0x4080)];
    for (const worker of workers) {
      const reports = [
        ...sums,
        [
          [4, 8, 12],
          [4, 8, 12],
        ],
      ];
      expect(worker).toMatchObject({ ...well, reports });
    }
    scripts.expectNothingLeft();
  });

  it('saves what optimizers keep, and goes on from it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gradlink-test-'));
    try {
      const { workers } = await runJob(
        scripts,
        size,
        `${aStore()}
        const file = ${JSON.stringify(join(folder, 'states'))};
        await kv.init('w', weights());
        await kv.setOptimizer(createOptimizer('adam'));
        const step = async (round) => {
          const out = new Float32Array(count);
          await kv.push('w', await buffers('float32', [0, 1].map((i) => gradient(round, 2 * kv.rank + i))));
          await kv.pull('w', out);
          return out;
        };
        const moved = (before, after) => after.map((value, i) => value - before[i]);
        const first = await step(0);
        await kv.saveOptimizerStates(file);
        const second = await step(1);
        await kv.loadOptimizerStates(file);
        const third = await step(1);
        // The same step again, from other values: rounded elsewhere.
        const [one, other] = [moved(first, second), moved(second, third)];
        report(one.every((value, i) => Math.abs(value - other[i]) < 1e-6) && one.some((value) => value !== 0));
        await kv.close();`,
        scripts.env(),
      );
      for (const worker of workers) expect(worker).toMatchObject({ ...well, reports: [true] });
    } finally {
      rmSync(folder, { recursive: true });
    }
    scripts.expectNothingLeft();
  });

  it('runs an update rule of JavaScript on every worker', async () => {
    const { workers } = await runJob(
      scripts,
      size,
      `${aStore()}
      await kv.init('w', Float32Array.of(1, 2));
      await kv.setUpdater((key, received, stored) => {
        for (let i = 0; i < stored.length; ++i) stored[i] += 10 * received[i];
      });
      const values = await buffers('float32', names.map(() => Float32Array.of(1, 2)));
      await kv.push('w', values);
      await kv.pull('w', values);
      report((await read(values)).map((array) => [...array]));
      await kv.close();`,
      scripts.env(),
    );
    for (const worker of workers) {
      expect(worker).toMatchObject({ ...well, reports: [names.map(() => [41, 82])] });
    }
    scripts.expectNothingLeft();
  });
});
