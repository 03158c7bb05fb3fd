// How processes and worker threads with GPUs meet, fail and end.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { devices } from '../../lib/gpu/devices.js';
import { Scripts, well } from '../support/processes.js';
import { onRealGpus } from './setup/fakes.js';

const gpus = devices().length;
/** Ranks that are processes: one a GPU. */
const size = Math.min(gpus, 3);

let scripts: Scripts;
let leaks: string;
let files = 0;
beforeEach(() => {
  scripts = new Scripts();
  leaks = join(tmpdir(), `gradlink-leaks-${process.pid}-${files++}`);
});
afterEach(async () => {
  await scripts.remove();
  rmSync(leaks, { force: true });
});

/** What a script is run with; the fakes say in a file what each process leaves. */
const env = (more: Record<string, string> = {}) => ({ GRADLINK_FAKE_LEAKS: leaks, ...more });

/** On the fakes: somebody has written the file, and there was nothing to write. */
function expectNothingLeft(): void {
  if (onRealGpus) return;
  expect(existsSync(leaks)).toBe(true);
  expect(readFileSync(leaks, 'utf8')).toBe('');
}

const aGroup = `
  const group = await Communicator.nccl();
  const buffers = group.gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 1000));
  await Promise.all(buffers.map((one) => one.fill(2)));
  await group.allReduce(buffers);
`;
const aWorld = `
  const comm = await Communicator.world({ backend: 'nccl' });
  const data = DeviceBuffer.alloc(comm.gpus[0], 'float32', 1000);
  await data.fill(comm.rank + 1);
`;
const total = (size * (size + 1)) / 2;

describe('a process', () => {
  it('with idle communicators, buffers and pinned arrays exits by itself', async () => {
    const ended = await scripts.run(
      `${aGroup}
      const array = pinned('float32', 1000);
      await buffers[0].slice(10, 20).copyTo(array.subarray(0, 10));
      report([...array.slice(8, 12)]);`,
      env(),
    );
    expect(ended).toMatchObject({ ...well, reports: [[2 * gpus, 2 * gpus, 0, 0]] });
    expectNothingLeft();
  });

  it('that has closed and disposed of everything exits by itself', async () => {
    const ended = await scripts.run(
      `${aGroup} await group.close(); buffers.forEach((one) => one.dispose()); report('closed');`,
      env(),
    );
    expect(ended).toMatchObject({ ...well, reports: ['closed'] });
    expectNothingLeft();
  });

  it('may exit in the middle of copies and collectives', async () => {
    const ended = await scripts.run(
      `${aGroup}
      const large = DeviceBuffer.alloc(0, 'uint8', 64 << 20);
      const host = new Uint8Array(64 << 20);
      for (let i = 0; i < 8; ++i) void large.slice(i).copyTo(host.subarray(i)).catch(() => undefined);
      void group.allReduce(buffers).catch(() => undefined);
      process.exit(3);`,
      env(),
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
      devices();
      found.push(loaded());
      report(found);`,
      env(),
    );
    expect(ended).toMatchObject({
      ...well,
      reports: [[null, null, expect.stringMatching(/cuda|nvidia-ml/)]],
    });
  });

  it.each([
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `devices()`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `DeviceBuffer.alloc(0, 'int8', 1)`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `pinned('int8', 1)`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `await Communicator.nccl()`],
    ['GRADLINK_CUDA_LIBRARY', 'libcuda.so.1', `await Communicator.world({ backend: 'nccl' })`],
    ['GRADLINK_NCCL_LIBRARY', 'libnccl.so.2', `await Communicator.nccl()`],
    ['GRADLINK_NCCL_LIBRARY', 'libnccl.so.2', `await Communicator.world({ backend: 'nccl' })`],
  ])('without the library of %s (%s) is told so by %s', async (variable, _, call) => {
    const ended = await scripts.run(
      `try { ${call}; report('done'); } catch (error) { report({ ...plain(error), name: error.name }); }`,
      { ...env(), [variable]: '/nonexistent/library.so' },
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
      env(),
    );
    expect(ended).toMatchObject({ ...well, reports: [[1, 1, 1]] });
    expectNothingLeft();
  });
});

describe('ranks that are processes', () => {
  it('meet, combine what their GPUs hold, and exit by themselves', async () => {
    const ranks = scripts.startRanks(
      size,
      `${aWorld}
      await comm.allReduce(data);
      report([comm.rank, comm.gpus[0], (await data.slice(998).copyTo()).join()]);
      const all = await comm.allGather(data.slice(0, 1), { out: DeviceBuffer.alloc(comm.rank, 'float32', comm.size) });
      report((await all.copyTo()).join());`,
      env(),
    );
    const ended = await Promise.all(ranks.map((one) => one.ended));
    expect(ended).toMatchObject(
      ended.map((_, rank) => ({
        ...well,
        reports: [[rank, rank, `${total},${total}`], new Array<number>(size).fill(total).join()],
      })),
    );
    expectNothingLeft();
  });

  it('may each name a GPU', async () => {
    const ended = await Promise.all(
      scripts
        .startRanks(
          size,
          `const gpu = ${size - 1} - Number(process.env.GRADLINK_RANK);
          const comm = await Communicator.world({ backend: 'nccl', gpu });
          const data = DeviceBuffer.alloc(gpu, 'int32', 1);
          await data.fill(comm.rank);
          await comm.broadcast(data, { root: ${size - 1} });
          report([comm.gpus, [...(await data.copyTo())]]);
          await comm.close();`,
          env(),
        )
        .map((one) => one.ended),
    );
    expect(ended).toMatchObject(
      ended.map((_, rank) => ({ ...well, reports: [[[size - 1 - rank], [size - 1]]] })),
    );
    expectNothingLeft();
  });
});

describe('of several ranks', () => {
  beforeEach((context) => {
    if (gpus < 2) context.skip('needs 2 GPUs');
  });

  /** Of each rank, what it reported. */
  const reportsOf = async (source: string, more?: Record<string, string>) => {
    const ended = await Promise.all(
      scripts.startRanks(size, source, env(more)).map((one) => one.ended),
    );
    expect(ended).toMatchObject(ended.map(() => well));
    return ended.map(({ reports }) => reports);
  };

  it('messages, neighbours and parts work as in the memory of the host', async () => {
    const reports = await reportsOf(`${aWorld}
      const next = (comm.rank + 1) % comm.size;
      const before = (comm.rank + comm.size - 1) % comm.size;
      const got = DeviceBuffer.alloc(comm.rank, 'float32', 1000);
      if (comm.rank === 0) {
        await comm.send(data, { to: next });
        report(await comm.receive(got, { from: before }));
      } else {
        report(await comm.receive(got, { from: before }));
        await comm.send(data, { to: next });
      }
      report((await got.copyTo())[999]);
      await comm.neighborAllReduce(data, { selfWeight: 0.5, sources: { [before]: 0.25 }, destinations: { [next]: 2 } });
      report((await data.copyTo())[0]);
      const part = await comm.split(comm.rank === 0 ? null : 1, -comm.rank);
      report(part && [part.rank, part.size, part.gpus, part.backend]);`);
    expect(reports).toEqual(
      reports.map((_, rank) => {
        const before = (rank + size - 1) % size;
        return [
          { source: before, count: 1000 },
          before + 1,
          0.5 * (rank + 1) + 0.25 * 2 * (before + 1),
          rank === 0 ? null : [size - 1 - rank, size - 1, [rank], 'nccl'],
        ];
      }),
    );
    expectNothingLeft();
  });

  it('one that makes another call is named to all', async () => {
    const reports = await reportsOf(`${aWorld}
      const call = comm.rank === 1 ? comm.broadcast(data) : comm.allReduce(data);
      report(await outcome(call));
      report(await outcome(comm.allReduce(data)));`);
    for (const [error, after] of reports) {
      expect(error).toMatchObject({ code: 'ERR_MISMATCH', rank: 1 });
      expect(after).toBe('done');
    }
    expectNothingLeft();
  });

  it('one that is killed is named to the others within the deadline', async () => {
    const ranks = scripts.startRanks(
      size,
      `${aWorld}
      await comm.allReduce(data);
      if (comm.rank === 1) {
        say('ready');
        setInterval(() => undefined, 1000);
      } else {
        report(await outcome(comm.allReduce(data, { timeoutMs: 60_000 })));
        report(await outcome(comm.allReduce(data)));
      }`,
      env(),
    );
    await ranks[1]!.said('ready');
    ranks[1]!.child.kill('SIGKILL');
    expect(await ranks[1]!.ended).toMatchObject({ signal: 'SIGKILL' });
    for (const survivor of ranks.filter((_, rank) => rank !== 1)) {
      const ended = await survivor.ended;
      expect(ended).toMatchObject(well);
      expect(ended.reports).toMatchObject([
        { code: 'ERR_PEER_LOST', rank: 1, op: 'allReduce' },
        { code: 'ERR_PEER_LOST', rank: 1 },
      ]);
    }
    expectNothingLeft();
  });

  it('one that does not make the call is named at the deadline', async () => {
    const [idle, ...others] = scripts.startRanks(
      size,
      `${aWorld}
      if (comm.rank === 0) setInterval(() => undefined, 1000);
      else report(await outcome(comm.allReduce(data, { timeoutMs: 300 })));`,
      env(),
    );
    for (const one of others) {
      const ended = await one.ended;
      expect(ended).toMatchObject(well);
      expect(ended.reports).toMatchObject([{ code: 'ERR_TIMEOUT', rank: 0, op: 'allReduce' }]);
    }
    idle!.child.kill('SIGKILL');
    expectNothingLeft();
  });

  it('one that never comes is named', async () => {
    const job = `absent-${process.pid}`;
    const ended = await scripts.run(
      `report(await outcome(Communicator.world({ backend: 'nccl', timeoutMs: 200 })));`,
      env({ GRADLINK_JOB: job, GRADLINK_RANK: '0', GRADLINK_SIZE: '2' }),
    );
    expect(ended).toMatchObject({
      ...well,
      reports: [
        { code: 'ERR_TIMEOUT', message: expect.stringMatching(/have not come: 1\./) as string },
      ],
    });
  });
});

/** What a machine's own GPUs do not do to order. */
describe('faults', () => {
  beforeEach((context) => {
    if (onRealGpus) context.skip('needs the fakes, which fail to order');
  });
  const faults = (list: string, more: Record<string, string> = {}) =>
    env({ GRADLINK_FAKE_FAULTS: list, ...more });

  it('without a GPU, one clear error', async () => {
    const ended = await scripts.run(
      `try { devices(); } catch (error) { report(plain(error)); }`,
      env({ GRADLINK_FAKE_GPUS: '0' }),
    );
    expect(ended).toMatchObject({
      ...well,
      reports: [
        { code: 'ERR_BACKEND_UNAVAILABLE', message: expect.stringMatching(/GPU/) as string },
      ],
    });
  });

  it('a copy that the GPU fails rejects, and nothing is left', async () => {
    const ended = await scripts.run(
      `const buffer = DeviceBuffer.alloc(0, 'float32', 4);
      report(await outcome(buffer.copyFrom(new Float32Array(4))));
      report(await outcome(buffer.copyTo()));
      buffer.dispose();`,
      faults('copy=2'),
    );
    expect(ended).toMatchObject({ ...well, reports: ['done', { code: 'ERR_SYSTEM' }] });
    expectNothingLeft();
  });

  it('memory that is short is an error that says what is free', async () => {
    const ended = await scripts.run(
      `const buffer = DeviceBuffer.alloc(0, 'uint8', 600);
      try { DeviceBuffer.alloc(0, 'uint8', 600); } catch (error) { report(plain(error)); }
      try { pinned('uint8', 600); } catch (error) { report(plain(error)); }`,
      faults('oom=1000,pinned-oom'),
    );
    expect(ended).toMatchObject({
      ...well,
      reports: [
        {
          code: 'ERR_OUT_OF_MEMORY',
          message: expect.stringMatching(/of 1000 bytes free/) as string,
        },
        { code: 'ERR_OUT_OF_MEMORY', message: expect.stringMatching(/page-locked/) as string },
      ],
    });
    expectNothingLeft();
  });

  it('a collective that fails on the way ends its communicator alone', async () => {
    const ended = await scripts.run(
      `${aGroup}
      report(await outcome(group.allReduce(buffers)));
      report(await outcome(group.allReduce(buffers)));
      await group.close();
      const next = await Communicator.nccl();
      report(await outcome(next.barrier()));`,
      faults('nccl-async=2@1'),
    );
    expect(ended).toMatchObject({
      ...well,
      reports: [{ code: 'ERR_SYSTEM', rank: 1 }, { rank: 1 }, 'done'],
    });
    expectNothingLeft();
  });

  it('a rank that is stuck is named at the deadline, and the buffers come free', async () => {
    const ended = await scripts.run(
      `${aGroup}
      report(await outcome(group.allReduce(buffers, { timeoutMs: 200 })));
      buffers.forEach((one) => one.dispose());
      await group.close();`,
      faults('nccl-stuck=2@1'),
    );
    expect(ended).toMatchObject({ ...well, reports: [{ code: 'ERR_TIMEOUT', op: 'allReduce' }] });
    expectNothingLeft();
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
    expectNothingLeft();
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
    expectNothingLeft();
  });
});
