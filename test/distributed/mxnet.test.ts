// MXNet's nightly tests of its distributed stores (dist_sync_kvstore.py, dist_async_kvstore.py), as an outside oracle:
// shapes, values and the exact results are theirs.
import { afterAll, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { helpers, runJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

// 1200 x 1100 is above the bound of 1,000,000 elements: cut over the servers.
const keys = `
  ${helpers}
  import { Test } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
  const small = 9;
  const big = 1200 * 1100;
  const lengths = { 3: small, 5: small, 7: small, 99: big };
  const rate = 2;
`;

const allWell = (count: number, reports: unknown[]) =>
  Array.from({ length: count }, () => expect.objectContaining({ ...well, reports }) as unknown);

it('set_optimizer: worker 0 alone, as its nightly tests have it; a barrier of another worker is none of it', async () => {
  const { workers } = await runJob(
    scripts,
    { workers: 2, servers: 2 },
    `
    ${keys}
    const kv = await KVStore.create('dist_sync');
    await kv.init(3, filled(small, 1));
    const out = filled(small, 0);
    if (kv.rank === 0) await kv.setOptimizer(new Test({ rescaleGrad: rate }));
    for (let i = 0; i < 3; i++) await kv.push(3, filled(small, 1));
    await kv.pull(3, out);
    const right = [same(out, 1 + 3 * 2 * rate)];
    await kv.close();

    const late = await KVStore.create('dist_async');
    await late.init(3, filled(small, 1));
    if (late.rank === 0) {
      await late.setOptimizer(new Test({ rescaleGrad: rate }));
      await late.push(3, filled(small, 1));
    }
    await late.barrier();
    await late.pull(3, out);
    right.push(same(out, 1 + rate));
    // Worker 0's first call was its own affair: this one of worker 1 means worker 0's second.
    await late.setOptimizer(new Test({ rescaleGrad: -rate }));
    if (late.rank === 1) await late.push(3, filled(small, 1));
    await late.barrier();
    await late.pull(3, out);
    right.push(same(out, 1));
    report(right);
    await late.close();
    `,
  );
  expect(workers).toEqual(allWell(2, [[true, true, true]]));
});

it('set_optimizer twice without a barrier between, in a dist_async store: calls are counted', async () => {
  const { workers } = await runJob(
    scripts,
    { workers: 3, servers: 2 },
    `
    ${keys}
    const outs = { 3: filled(small, 0), 99: filled(big, 0) };
    const right = [];
    for (const everybody of [true, false]) {
      const kv = await KVStore.create('dist_async');
      for (const key of [3, 99]) await kv.init(key, filled(lengths[key], 0));
      const sets = everybody || kv.rank === 0;
      const waiting = [];
      // What is pushed between the calls is stepped by either optimizer, or assigned, server by server.
      if (sets) waiting.push(kv.setOptimizer(new Test({ rescaleGrad: 1 })));
      for (const key of [3, 99]) waiting.push(kv.push(key, filled(lengths[key], 1)));
      if (sets) waiting.push(kv.setOptimizer(new Test({ rescaleGrad: 2 })));
      await Promise.all(waiting);
      await kv.barrier();
      for (const key of [3, 99]) {
        await kv.pull(key, outs[key]);
        right.push(outs[key].every((one) => [1, 2, 3, 4, 5].includes(one)));
      }
      await kv.barrier();
      for (const key of [3, 99]) {
        const before = outs[key].slice();
        await kv.push(key, filled(lengths[key], 1));
        await kv.barrier();
        await kv.pull(key, outs[key]);
        right.push(outs[key].every((one, i) => one === before[i] + 6));
        await kv.barrier();
      }
      await kv.close();
    }
    report(right);
    `,
  );
  expect(workers).toEqual(allWell(3, [Array.from({ length: 8 }, () => true)]));
});
