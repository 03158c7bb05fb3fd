// The store without servers, over processes.
import { afterAll, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { helpers, runJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

const library = new URL('../../dist/index.js', import.meta.url).href;
const optimizers = `import { SGD } from ${JSON.stringify(library)};`;

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
    report((await outcome(kv.setServerProfiler('profile.json'))).code);
    await kv.close();
    `,
    );
    const reports = [true, [0, true, 0], 'ERR_UNSUPPORTED', 'ERR_UNSUPPORTED', 'ERR_UNSUPPORTED'];
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
  },
);
