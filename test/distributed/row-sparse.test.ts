// MXNet's nightly cases of row_sparse keys (dist_sync_kvstore.py: check_row_sparse_keys and its kin; dist_async), and what
// travels of them.

import { afterAll, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { helpers, runJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

const size = { workers: 2, servers: 2 };
const sizeOf = (type: string) => ({ ...size, servers: type === 'allreduce' ? 0 : size.servers });
/** Cuts keys over the servers, where there are servers. */
const cut = (type: string) => (type === 'allreduce' ? '{}' : '{ bigArrayBound: 10_000 }');
// `big` is cut over both servers, in pieces that rows of 24 elements do not fit.
const common = `
  ${helpers}
  import { GroupAdaGrad, RowSparse, SGD, Test } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
  const shapes = { small: [9, 24], big: [20_000, 24] };
  const rows = (name, indices, value) => new RowSparse({
    indices, data: filled(24 * indices.length, value), shape: shapes[name],
  });
  const empty = (name) => rows(name, [], 0);
  const open = async (type, options) => {
    const kv = await KVStore.create(type, { devices: 2, ...options });
    for (const name of ['small', 'big']) await kv.init(name, empty(name));
    return kv;
  };
  // Of each row its value, where all of the row has it.
  const heads = ({ indices, data }) => Object.fromEntries([...indices].map((row, at) => {
    const own = data.subarray(24 * at, 24 * (at + 1));
    return [row, own.every((one) => one === own[0]) ? own[0] : NaN];
  }));
`;

const everyWorker = (reports: unknown[]) =>
  Array.from(
    { length: size.workers },
    () => expect.objectContaining({ ...well, reports }) as unknown,
  );

describe.each(['dist_sync', 'allreduce'])('%s', (type) => {
  it('adds up the rows of all devices and workers, and gives each worker its own', async () => {
    const { workers } = await runJob(
      scripts,
      sizeOf(type),
      `${common}
      const kv = await open('${type}', ${cut(type)});
      await kv.setOptimizer(new Test());
      for (let round = 0; round < 3; ++round) {
        for (const [name, last] of [['small', 8], ['big', 19_999]]) {
          // Row 1 of both workers, twice of one device; one row of each worker alone; one of nobody.
          const mine = [rows(name, [1, kv.rank + 2, 1], 1), rows(name, [last], 10)];
          await kv.push(name, mine);
          const out = empty(name);
          await kv.rowSparsePull(name, out, [[last, 1], [kv.rank + 2, 0]]);
          const right = { 0: 0, 1: 4, [kv.rank + 2]: 1, [last]: 20 };
          for (const row of Object.keys(right)) right[row] *= round + 1;
          report(JSON.stringify(heads(out)) === JSON.stringify(right));
        }
      }
      // Rows that nobody asks for, and none at all.
      const none = rows('big', [3], 7);
      await kv.rowSparsePull('big', none, []);
      const whole = new Float32Array(20_000 * 24);
      await kv.push('big', [empty('big'), empty('big')]);
      await kv.pull('big', whole);
      const some = filled(20_000 * 24, 5);
      await kv.rowSparsePull('big', some, [1]);
      report([none.indices.length, whole[24], whole[24 * 10], some[24], some[0], some.at(-1)]);
      await kv.close();`,
    );
    expect(workers).toEqual(
      everyWorker([true, true, true, true, true, true, [0, 12, 0, 12, 0, 0]]),
    );
  });
});

it('only the rows travel', async () => {
  const { workers } = await runJob(
    scripts,
    size,
    `${common}
    const kv = await open('dist_sync', { bigArrayBound: 10_000 });
    await kv.setOptimizer(new SGD());
    const moved = async () => {
      const { worker } = await kv.report();
      const sum = (list) => list.reduce((a, b) => a + b, 0);
      return [sum(worker.bytesSent), sum(worker.bytesReceived)];
    };
    const ids = Array.from({ length: 10 }, (_, i) => i * 1999);
    const before = await moved();
    for (let step = 0; step < 10; ++step) {
      await kv.push('big', rows('big', ids, 1));
      await kv.rowSparsePull('big', empty('big'), ids);
    }
    const after = await moved();
    report(after.map((bytes, i) => bytes - before[i]));
    await kv.close();`,
  );
  expect(workers).toEqual(workers.map(() => expect.objectContaining(well) as unknown));
  for (const { reports } of workers) {
    const [[sent, received]] = reports as [[number, number]];
    // Ten times ten rows of 96 bytes, of 1.9 MB.
    expect(sent).toBeGreaterThanOrEqual(9600);
    expect(sent).toBeLessThan(50_000);
    expect(received).toBeGreaterThanOrEqual(9600);
    expect(received).toBeLessThan(50_000);
  }
});
