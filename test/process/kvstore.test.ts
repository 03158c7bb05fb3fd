// How processes and worker threads end that have stores.
import { afterAll, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

const store = `
  const count = 1 << 20;
  const kv = await KVStore.create('device', { devices: 2 });
  await kv.init('a', new Float32Array(count));
  const values = [new Float32Array(count).fill(1), new Float32Array(count).fill(2)];
  const outs = values.map(() => new Float32Array(count));
`;

it('a process with an idle store exits by itself', async () => {
  expect(await scripts.run(`${store} report(outs.length);`)).toMatchObject({
    ...well,
    reports: [2],
  });
});

it('a process finishes what is pending first', { tags: 'smoke' }, async () => {
  const source = `
    ${store}
    for (let i = 0; i < 20; i++) kv.push('a', values);
    kv.pull('a', outs).then(() => report(outs[1][count - 1]));
  `;
  expect(await scripts.run(source)).toMatchObject({ ...well, reports: [3] });
});

it('process.exit in the middle of operations is an orderly end', async () => {
  const source = `
    ${store}
    for (let i = 0; i < 200; i++) kv.push('a', values);
    setImmediate(() => process.exit(7));
  `;
  expect(await scripts.run(source)).toMatchObject({ ...well, code: 7 });
});

it('an error that nobody catches ends a process in the middle of operations', async () => {
  const source = `
    ${store}
    for (let i = 0; i < 200; i++) kv.push('a', values);
    setImmediate(() => { throw new Error('unforeseen'); });
  `;
  const ended = await scripts.run(source);
  expect(ended).toMatchObject({ code: 1, signal: null });
  expect(ended.stderr).toContain('unforeseen');
});

it('a worker is terminated while its updater is due', async () => {
  const worker = scripts.write(`
    import { parentPort } from 'node:worker_threads';
    ${store}
    await kv.setUpdater(() => {
      parentPort.postMessage('begun');
      for (;;);
    });
    kv.push('a', values);
  `);
  const source = `
    import { once } from 'node:events';
    import { Worker } from 'node:worker_threads';
    const worker = new Worker(${JSON.stringify(worker)});
    await once(worker, 'message');
    report(await worker.terminate());
  `;
  expect(await scripts.run(source)).toMatchObject({ ...well, reports: [1] });
});
