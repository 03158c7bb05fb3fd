// Stores with servers, and without, whose devices are GPUs, in jobs of real processes.
import { afterEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { runJob } from '../distributed/support.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { well } from '../support/processes.js';
import { onRealGpus } from './setup/fakes.js';

const present = gpuDevices().length;
/** Three devices a worker, on as many GPUs as there are. */
const names = [0, 1, 2].map((index) => `gpu:${index % present}`);
const library = new URL('../../dist/index.js', import.meta.url).href;

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** In every worker: a store, and arrays, one for each of its devices. */
const aStore = (type: string, options = '', on: readonly string[] = names) => `
  import { Test, createOptimizer } from ${JSON.stringify(library)};
  const names = ${JSON.stringify(on)};
  const kv = await KVStore.create('${type}', { devices: names, ${options} });
  const buffers = (dtype, arrays) => Promise.all(names.map(async (name, index) => {
    const buffer = DeviceBuffer.alloc(Number(name.slice(4)), dtype, arrays[index].length);
    await buffer.copyFrom(arrays[index]);
    return buffer;
  }));
  const zeros = (length) => buffers('float32', names.map(() => new Float32Array(length)));
  const read = (made) => Promise.all(made.map((buffer) => buffer.copyTo()));
`;

/** Long enough to be cut over both servers, and not a multiple of anything. */
const long = 20_003;
const lengths = [7, long] as const;

describe.each(['dist_sync_device', 'dist_sync', 'dist_async_device', 'dist_async'])(
  '%s',
  (type) => {
    const asynchronous = type.startsWith('dist_async');

    it('sums what the GPUs of all workers push, and gives every GPU the result', async () => {
      const { workers, servers } = await runJob(
        scripts,
        { workers: 2, servers: 2 },
        `${aStore(type, 'bigArrayBound: 5000')}
      report([kv.type, kv.devices]);
      const lengths = ${JSON.stringify(lengths)};
      await kv.init(['0', '1'], lengths.map((length) => new Float32Array(length)));
      // Asynchronous stores without an optimizer keep what came last.
      if (${asynchronous}) await kv.setOptimizer(new Test());
      for (let round = 0; round < 3; ++round) {
        for (const [key, length] of lengths.entries()) {
          const one = (index) =>
            Float32Array.from({ length }, (_, i) => (i % 100) * (index + 1) + 10 * round + kv.rank);
          await kv.push(String(key), await buffers('float32', names.map((_, index) => one(index))));
        }
        await kv.barrier();
        for (const [key, length] of lengths.entries()) {
          const outs = await zeros(length);
          await kv.pull(String(key), outs);
          report((await read(outs)).map((array) => [array[1], array[length - 1]]));
        }
        await kv.barrier();
      }
      await kv.close();`,
        scripts.env(),
      );
      expect(servers).toMatchObject([well, well]);
      // Of both workers, three devices each.
      const sum = (round: number, i: number) => 2 * 6 * (i % 100) + 2 * 3 * 10 * round + 3;
      const stored = (round: number, i: number): number =>
        sum(round, i) + (asynchronous && round > 0 ? stored(round - 1, i) : 0);
      const rounds = [0, 1, 2].flatMap((round) =>
        lengths.map((length) => names.map(() => [stored(round, 1), stored(round, length - 1)])),
      );
      for (const worker of workers) {
        expect(worker).toMatchObject({ ...well, reports: [[type, names], ...rounds] });
      }
      scripts.expectNothingLeft();
    });
  },
);

describe('the arrays of a worker, summed by NCCL', () => {
  it.for([
    { how: 'does not start', fault: 'fails' },
    { how: 'starts', fault: undefined },
  ])('is NCCL indeed, which $how', async ({ fault }, context) => {
    if (present < 3 || onRealGpus) context.skip('needs three stand-ins of GPUs');
    const push = (options: string) =>
      runJob(
        scripts,
        { workers: 1, servers: 1 },
        `${aStore('dist_sync_device', options)}
        const pushing = kv.init('w', new Float32Array(3)).then(async () =>
          kv.push('w', await buffers('float32', names.map(() => Float32Array.of(1, 2, 3)))));
        report(await outcome(pushing.then(() => kv.barrier())));
        process.exit(0);`,
        scripts.env(fault === undefined ? {} : { GRADLINK_FAKE_FAULTS: `nccl-init=${fault}` }),
      );
    const byCopies = await push('');
    expect(byCopies.workers[0]).toMatchObject({ reports: ['done'] });
    const [report] = (await push("merge: 'nccl'")).workers[0]!.reports;
    if (fault === undefined) expect(report).toBe('done');
    else {
      expect(report).toMatchObject({
        code: 'ERR_SYSTEM',
        message: expect.stringContaining('shm') as string,
      });
    }
  });

  it('is refused where there is nothing to choose, or a GPU comes twice', async () => {
    const refused = async (type: string, options: string) => {
      const { workers } = await runJob(
        scripts,
        { workers: 1, servers: 1 },
        `const made = (type, options) => KVStore.create(type, options).then((kv) => kv.close());
        report(await outcome(made('${type}', ${options})));
        process.exit(0);`,
        scripts.env(),
      );
      return workers[0]!.reports[0];
    };
    const merge = (which: string) => `{ devices: ['gpu:0', 'gpu:0'], merge: '${which}' }`;
    expect(await refused('dist_sync_device', merge('auto'))).toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
      message: expect.stringMatching(/peers, nccl.*merge/) as string,
    });
    expect(await refused('dist_sync', merge('nccl'))).toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
      message: expect.stringMatching(/merge needs .*'device'/) as string,
    });
    expect(await refused('dist_sync_device', `{ devices: 2, merge: 'nccl' }`)).toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
    expect(await refused('allreduce', merge('nccl'))).toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringMatching(/NCCL.*each GPU/) as string,
    });
  });
});

describe('a store with servers on GPUs', () => {
  it.for([
    ['copy=4', 'ERR_SYSTEM', /failed/],
    ['stuck-copy=4', 'ERR_TIMEOUT', /store.*gpu:0/],
  ] as const)('ends soon after %s', { tags: 'full' }, async ([fault, code, message], context) => {
    if (onRealGpus) context.skip('needs GPUs that fail when asked to');
    const stuck = fault.startsWith('stuck');
    // What comes before must not run into it on a busy machine.
    const deadline = stuck ? 'timeoutMs: 3000' : '';
    const { workers, servers } = await runJob(
      scripts,
      { workers: 1, servers: 1 },
      `${aStore('dist_sync', deadline)}
      await kv.init('w', new Float32Array(4));
      const values = await zeros(4); // three copies
      report(await outcome(kv.push('w', values)));
      await kv.close();
      report('closed');
      // Freeing memory waits for the device, and one that is stuck would never let go.
      if (${stuck}) process.exit();`,
      scripts.env({ GRADLINK_FAKE_FAULTS: fault }),
    );
    expect(workers[0]?.reports).toEqual([
      expect.objectContaining({ code, message: expect.stringMatching(message) as string }),
      'closed',
    ]);
    expect(servers).toMatchObject([well]);
    if (!stuck) scripts.expectNothingLeft();
  });

  it('refuses arrays of another type, and GPUs that are not there', async () => {
    const { workers } = await runJob(
      scripts,
      { workers: 1, servers: 1 },
      `report(await outcome(KVStore.create('dist_sync_device', { devices: ['gpu:${present}'] })));
      ${aStore('dist_sync_device')}
      await kv.init('w', new Float32Array(4));
      report(await outcome(kv.push('w', new Float64Array(4))));
      await kv.close();`.replace(/import \{ Test, createOptimizer \}.*\n/, ''),
      scripts.env(),
    );
    expect(workers[0]).toMatchObject({
      ...well,
      reports: [
        { message: expect.stringContaining(`${present}`) as string },
        {
          code: 'ERR_INVALID_ARG_VALUE',
          message: expect.stringContaining('float64') as string,
        },
      ],
    });
  });
});

const two = names.slice(0, 2);
const numbers = `
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
      { workers: 2, servers: 0 },
      `${aStore('allreduce', way.options, two)}
      ${numbers}
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
      expect(worker).toMatchObject({ ...well, reports: [['allreduce', 2, two], ...all] });
    }
    scripts.expectNothingLeft();
  });
});
