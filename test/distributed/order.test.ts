// Pushes and pulls into the same arrays that nobody awaits, as in test/kvstore/order.test.ts, through servers and
// without them.
import { afterAll, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { runJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

// The large array is cut over the servers.
const rounds = (type: string, keys: string, factor: string) => `
  const kv = await KVStore.create('${type}', { devices: 2${type === 'allreduce' ? '' : ', bigArrayBound: 10_000'} });
  const sizes = { small: 16, large: 30_001 };
  const zeros = (name) => new Float64Array(sizes[name.split(' ')[0]]);
  const all = ['small 0', 'large 0', 'small 1', 'large 1'];
  for (const name of all) await kv.init(name, zeros(name));
  const mine = ${keys};
  const arrays = mine.map((name) => [0, 1].map(() => zeros(name).fill(1)));
  const calls = [];
  for (let round = 0; round < 200; ++round) {
    for (const [at, name] of mine.entries()) calls.push(kv.push(name, arrays[at], { priority: -at }));
    for (const [at, name] of mine.entries()) calls.push(kv.pull(name, arrays[at], { priority: -at }));
  }
  await Promise.all(calls);
  const right = (${factor}) ** 200;
  report(arrays.flat().map((array) => array.every((value) => value === right)));
  await kv.barrier();
  await kv.close();
`;

const every = 'all';
// Who pushes alone to a key of an asynchronous store finds what it pushed.
const own = 'all.filter((name) => name.endsWith(String(kv.rank)))';

it.each([
  ['dist_sync', every, '2 * kv.numWorkers', 8],
  ['dist_async_device', own, '2', 4],
  ['allreduce', every, '2 * kv.numWorkers', 8],
])('%s', async (type, keys, factor, arrays) => {
  const servers = type === 'allreduce' ? 0 : 2;
  const { workers } = await runJob(scripts, { workers: 2, servers }, rounds(type, keys, factor));
  const reports = [Array.from({ length: arrays }, () => true)];
  for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
});
