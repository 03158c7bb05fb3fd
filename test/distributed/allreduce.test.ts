// The store without servers, over processes.
import { afterAll, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { helpers, runJob, startJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

const library = new URL('../../dist/index.js', import.meta.url).href;
const optimizers = `import { SGD } from ${JSON.stringify(library)};`;

it('alone it is a store of one worker', async () => {
  const ended = await scripts.run(`
    ${helpers}
    const kv = await KVStore.create('horovod');
    await kv.init('a', filled(3, 1));
    const out = filled(3, 0);
    await kv.pushPull('a', [filled(3, 2), filled(3, 3)], out);
    report([kv.type, kv.rank, kv.numWorkers, kv.numServers, ...out]);
    await kv.close();
  `);
  expect(ended).toMatchObject({ ...well, reports: [['horovod', 0, 1, 0, 5, 5, 5]] });
});

it(
  'sums over workers, with the optimizer on each, in any order of keys',
  { tags: 'smoke' },
  async () => {
    const { workers } = await runJob(
      scripts,
      { workers: 3, servers: 0 },
      `
    ${optimizers}
    ${helpers}
    const kv = await KVStore.create('allreduce', { devices: 2 });
    const keys = Array.from({ length: 47 }, (_, index) => index);
    await kv.init(keys, keys.map((key) => filled(key * 40, kv.rank + 1)));
    await kv.setOptimizer(new SGD({ learningRate: 1 }));
    const order = keys.map((key) => (key * (2 * kv.rank + 3)) % keys.length);
    const values = keys.map((key) => [filled(key * 40, key), filled(key * 40, kv.rank)]);
    const outs = keys.map((key) => filled(key * 40, 0));
    const pushes = order.flatMap((key) => [kv.push(key, values[key]), kv.pull(key, outs[key])]);
    await Promise.all(pushes);
    report(keys.every((key) => same(outs[key], 1 - 3 * key - 3)));
    const { worker, servers } = await kv.report();
    report([servers.length, worker.bytesReduced > 0, kv.numDeadNodes()]);
    report((await outcome((async () => kv.placement())())).code);
    report((await outcome(kv.setGradientCompression({ type: '2bit' }))).code);
    await kv.close();
    `,
    );
    const reports = [true, [0, true, 0], 'ERR_UNSUPPORTED', 'ERR_UNSUPPORTED'];
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
  },
);

it('a JavaScript updater runs on every worker', async () => {
  const { workers } = await runJob(
    scripts,
    { workers: 2, servers: 0 },
    `
    ${helpers}
    const kv = await KVStore.create('allreduce');
    await kv.init('a', filled(3, 10));
    await kv.setUpdater((key, received, stored) => stored.forEach((one, i) => (stored[i] = one - received[i])));
    const out = filled(3, 0);
    await kv.push('a', filled(3, kv.rank + 1));
    await kv.pull('a', out);
    report([...out]);
    await kv.close();
    `,
  );
  for (const worker of workers) expect(worker).toMatchObject({ ...well, reports: [[7, 7, 7]] });
});

it('who leaves is no longer waited for', async () => {
  const { workers } = await runJob(
    scripts,
    { workers: 3, servers: 0 },
    `
    ${helpers}
    const kv = await KVStore.create('allreduce');
    await kv.init('a', filled(10, 0));
    const out = filled(10, 0);
    for (let batch = 0; batch < 2 + kv.rank; batch++) {
      await kv.pushPull('a', filled(10, kv.rank + 1), out);
      report(out[9]);
    }
    await kv.leave();
    await kv.close();
    `,
  );
  expect(workers.map(({ reports }) => reports)).toEqual([
    [6, 6],
    [6, 6, 5],
    [6, 6, 5, 3],
  ]);
  for (const worker of workers) expect(worker).toMatchObject(well);
});

it('a worker that dies is named on the others', async () => {
  const job = startJob(
    scripts,
    { workers: 3, servers: 0 },
    `
    ${helpers}
    const kv = await KVStore.create('allreduce');
    await kv.init('a', filled(1000000, 0));
    const out = filled(1000000, 0);
    let rounds = 0;
    report(await outcome((async () => {
      for (;;) {
        await kv.pushPull('a', filled(1000000, 1), out);
        if (rounds++ === 1) say('begun');
      }
    })()));
    await kv.close();
    `,
  );
  await Promise.all(job.workers.map((worker) => worker.said('begun')));
  job.workers[2]!.child.kill('SIGKILL');
  const { workers } = await job.ended;
  for (const rank of [0, 1]) {
    expect(workers[rank]).toMatchObject({ code: 0, signal: null });
    expect(workers[rank]!.reports[0]).toMatchObject({ code: 'ERR_PEER_LOST', rank: 2 });
  }
});
