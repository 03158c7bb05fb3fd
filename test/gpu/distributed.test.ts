// Stores with servers, and without, whose devices are GPUs, in jobs of real processes.
import { afterEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { runJob } from '../distributed/support.js';
import { errorWith } from '../support/errors.js';
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
      expect(report).toEqual(errorWith('ERR_SYSTEM', /shm/));
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
    expect(await refused('dist_sync_device', merge('auto'))).toEqual(
      errorWith('ERR_INVALID_ARG_VALUE', /peers, nccl.*merge/),
    );
    expect(await refused('dist_sync', merge('nccl'))).toEqual(
      errorWith('ERR_INVALID_ARG_VALUE', /merge needs .*'device'/),
    );
    expect(await refused('dist_sync_device', `{ devices: 2, merge: 'nccl' }`)).toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
    expect(await refused('allreduce', merge('nccl'))).toEqual(
      errorWith('ERR_UNSUPPORTED', /NCCL.*each GPU/),
    );
  });
});

describe('a store with servers on GPUs', () => {
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
        errorWith('ERR_INVALID_ARG_VALUE', /float64/),
      ],
    });
  });
});
