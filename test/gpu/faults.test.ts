// GPUs that fail in the middle of things.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { errorWith } from '../support/errors.js';
import { GpuScripts, aGroup } from '../support/gpu-processes.js';
import { well } from '../support/processes.js';
import { onRealGpus } from './setup/fakes.js';

/** What a machine's own GPUs do not do to order. */
describe('faults', () => {
  let scripts: GpuScripts;
  beforeEach((context) => {
    scripts = new GpuScripts();
    if (onRealGpus) context.skip('needs the fakes, which fail to order');
  });
  afterEach(() => scripts.remove());
  const faults = (list: string) => scripts.env({ GRADLINK_FAKE_FAULTS: list });

  it('a copy that the GPU fails rejects, and nothing is left', async () => {
    const ended = await scripts.run(
      `const buffer = DeviceBuffer.alloc(0, 'float32', 4);
      report(await outcome(buffer.copyFrom(new Float32Array(4))));
      report(await outcome(buffer.copyTo()));
      buffer.dispose();`,
      faults('copy=2'),
    );
    expect(ended).toMatchObject({ ...well, reports: ['done', { code: 'ERR_SYSTEM' }] });
    scripts.expectNothingLeft();
  });

  it('NCCL that cannot start leaves the store device its copies between GPUs', async () => {
    const merged = (options: string) => `
      process.on('warning', ({ code, message }) => report({ code, message }));
      for (let i = 0; i < 2; ++i) {
        const store = KVStore.create('device', { devices: ['gpu:0', 'gpu:1'], ${options} });
        const kv = await store.catch((error) => { report(plain(error)); });
        if (!kv) continue;
        const arrays = [0, 1].map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 4));
        await kv.init('w', new Float32Array(4));
        for (const array of arrays) await array.copyFrom(Float32Array.of(1, 2, 3, 4));
        await kv.pushPull('w', arrays, arrays);
        report(await arrays[1].copyTo(new Float32Array(4)).then((got) => [...(got ?? [])]));
        await kv.close();
        arrays.forEach((array) => array.dispose());
      }`;
    const run = (options: string) => scripts.run(merged(options), faults('nccl-init=fails'));
    const sum = [2, 4, 6, 8];
    const warning = {
      code: 'GRADLINK_MERGE',
      message: expect.stringMatching(/copies.*NCCL.*shm/),
    };
    const byDefault = await run('');
    expect(byDefault).toMatchObject({ code: 0, signal: null });
    // One warning, however many stores.
    expect(byDefault.reports).toHaveLength(3);
    expect(byDefault.reports).toEqual(expect.arrayContaining([warning, sum]));
    expect(await run(`merge: 'peers'`)).toMatchObject({ ...well, reports: [sum, sum] });
    const failed = errorWith('ERR_SYSTEM', /--shm-size/);
    expect(await run(`merge: 'nccl'`)).toMatchObject({ ...well, reports: [failed, failed] });
    scripts.expectNothingLeft();
  });

  it('a collective that would never end is ended by a signal', async () => {
    const ended = await scripts.run(
      `${aGroup}
      const reason = new Error('long enough');
      // One that has not begun is only dropped: then with more patience.
      for (let ms = 5, code; code === undefined; ms *= 2) {
        const controller = new AbortController();
        const pending = group.allReduce(buffers, { timeoutMs: Infinity, signal: controller.signal });
        setTimeout(() => controller.abort(reason), ms);
        report(await pending.catch((error) => error === reason));
        code = (await outcome(group.barrier())).code;
        if (code) report(code);
      }`,
      faults('nccl-stuck=2@1'),
    );
    expect(ended).toMatchObject(well);
    expect(new Set(ended.reports)).toEqual(new Set([true, 'ERR_ABORTED']));
    scripts.expectNothingLeft();
  });

  it('and by the end of its worker thread', async () => {
    const worker = scripts.write(`
      import { parentPort } from 'node:worker_threads';
      ${aGroup}
      const never = group.allReduce(buffers, { timeoutMs: Infinity });
      parentPort.postMessage('pending');
      await never;
    `);
    const ended = await scripts.run(
      `import { once } from 'node:events';
      import { Worker } from 'node:worker_threads';
      const worker = new Worker(${JSON.stringify(worker)});
      await once(worker, 'message');
      report(await worker.terminate());`,
      faults('nccl-stuck=2@1'),
    );
    expect(ended).toMatchObject({ ...well, reports: [1] });
    scripts.expectNothingLeft();
  });
});
