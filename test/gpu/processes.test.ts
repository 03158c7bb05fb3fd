// How processes and worker threads with GPUs meet, fail and end.
import { afterEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { GpuScripts, aGroup } from '../support/gpu-processes.js';
import { well } from '../support/processes.js';

const gpus = gpuDevices().length;

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

describe('a process', () => {
  it('with idle communicators, buffers and pinned arrays exits by itself', async () => {
    const ended = await scripts.run(
      `${aGroup}
      const array = pinnedArray('float32', 1000);
      await buffers[0].slice(10, 20).copyTo(array.subarray(0, 10));
      report([...array.slice(8, 12)]);`,
      scripts.env(),
    );
    expect(ended).toMatchObject({ ...well, reports: [[2 * gpus, 2 * gpus, 0, 0]] });
    scripts.expectNothingLeft();
  });

  it('may exit in the middle of copies and collectives', async () => {
    const ended = await scripts.run(
      `${aGroup}
      const large = DeviceBuffer.alloc(0, 'uint8', 64 << 20);
      const host = new Uint8Array(64 << 20);
      for (let i = 0; i < 8; ++i) void large.slice(i).copyTo(host.subarray(i)).catch(() => undefined);
      void group.allReduce(buffers).catch(() => undefined);
      process.exit(3);`,
      scripts.env(),
    );
    // Node ends at once then, and nobody is asked to clean up: the system takes everything back.
    expect(ended).toMatchObject({ code: 3, signal: null, stderr: '' });
  });

  it('loads nothing of CUDA before it is used', async () => {
    const ended = await scripts.run(
      `import { readFileSync } from 'node:fs';
      const loaded = () => /lib(cuda|nccl|nvidia-ml)[.]so/.exec(readFileSync('/proc/self/maps', 'utf8'))?.[1] ?? null;
      const found = [loaded()];
      const local = Communicator.local(2);
      await local.allReduce([new Float32Array(8), new Float32Array(8)]);
      found.push(loaded());
      gpuDevices();
      found.push(loaded());
      report(found);`,
      scripts.env(),
    );
    expect(ended).toMatchObject({
      ...well,
      reports: [[null, null, expect.stringMatching(/cuda|nvidia-ml/)]],
    });
  });

  it.each([
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `gpuDevices()`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `DeviceBuffer.alloc(0, 'int8', 1)`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `pinnedArray('int8', 1)`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `await Communicator.nccl()`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `await Communicator.world({ backend: 'nccl' })`],
    ['GRADLINK_NCCL_LIBRARY', 'libnccl.so.2', `await Communicator.nccl()`],
    ['GRADLINK_NCCL_LIBRARY', 'libnccl.so.2', `await Communicator.world({ backend: 'nccl' })`],
  ])('without the library of %s (%s) is told so by %s', async (variable, _, call) => {
    const ended = await scripts.run(
      `try { ${call}; report('done'); } catch (error) { report({ ...plain(error), name: error.name }); }`,
      { ...scripts.env(), [variable]: '/nonexistent/library.so' },
    );
    expect(ended).toMatchObject({
      ...well,
      reports: [
        {
          name: 'GradlinkError',
          code: 'ERR_BACKEND_UNAVAILABLE',
          message: expect.stringContaining('/nonexistent/library.so') as string,
        },
      ],
    });
  });
});

describe('a worker thread', () => {
  it('ends with what it left open, and in the middle of work', async () => {
    const worker = scripts.write(`
      import { parentPort } from 'node:worker_threads';
      ${aGroup}
      parentPort.postMessage('ready');
      const large = DeviceBuffer.alloc(0, 'uint8', 64 << 20);
      const host = new Uint8Array(64 << 20);
      for (;;) await Promise.all([large.copyTo(host), group.allReduce(buffers)]);
    `);
    const ended = await scripts.run(
      `import { once } from 'node:events';
      import { Worker } from 'node:worker_threads';
      for (let i = 0; i < 3; ++i) {
        const worker = new Worker(${JSON.stringify(worker)});
        await once(worker, 'message');
        await worker.terminate();
      }
      const mine = DeviceBuffer.alloc(0, 'int8', 3);
      await mine.fill(1);
      report([...(await mine.copyTo())]);`,
      scripts.env(),
    );
    expect(ended).toMatchObject({ ...well, reports: [[1, 1, 1]] });
    scripts.expectNothingLeft();
  });
});

describe('ranks that are processes', () => {
  it('one alone exchanges with nobody', async () => {
    const ended = await scripts.run(
      `const comm = await Communicator.world({ backend: 'nccl' });
      const data = DeviceBuffer.alloc(comm.gpus[0], 'float32', 4);
      await data.fill(3);
      await comm.neighborAllReduce(data);
      report([...(await data.copyTo())]);
      report((await comm.neighborAllGather(data)).length);
      const window = await comm.createWindow(data);
      await window.put();
      await window.get();
      report([...(await (await window.update()).copyTo())]);
      await window.free();
      await comm.close();`,
      scripts.env(),
    );
    expect(ended).toMatchObject({ ...well, reports: [[3, 3, 3, 3], 0, [3, 3, 3, 3]] });
    scripts.expectNothingLeft();
  });
});
