// How processes and workers end while communicators are idle or busy.
import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import type { Running } from '../support/processes.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

/** A receive that nobody will ever answer. */
const stuck = `const never = comm.receive(new Float32Array(4), { from: 0, timeoutMs: Infinity });`;
// The other rank is kept: one that is collected has left.
const alone = `const ranks = await Communicator.local(2).openRanks(); const comm = ranks[1]; globalThis.kept = ranks;`;

describe('a process', () => {
  it('with idle communicators exits by itself', async () => {
    const ended = await scripts.run(`
      ${alone}
      const group = Communicator.local(3);
      await group.allReduce([1, 2, 3].map(() => new Float32Array(100_000)));
      const shared = group.allocShared('float32', 1000);
      report(shared.length);
    `);
    expect(ended).toMatchObject({ ...well, reports: [1000] });
  });

  it('with a pending operation stays until it is done', { tags: 'smoke' }, async () => {
    const ended = await scripts.run(`
      ${alone}
      comm.receive(new Float32Array(4), { from: 0, timeoutMs: 300 }).catch((error) => report(error.code));
    `);
    expect(ended).toMatchObject({ ...well, reports: ['ERR_TIMEOUT'] });
  });

  it('with a pending operation ends when process.exit is called', async () => {
    const ended = await scripts.run(`${alone} ${stuck} setImmediate(() => process.exit(7));`);
    expect(ended).toMatchObject({ code: 7, signal: null, stderr: '' });
  });

  it('that waits to join ends when process.exit is called', async () => {
    const ended = await scripts.run(`
      void Communicator.join({ name: 'lonely-${process.pid}', rank: 0, size: 2, timeoutMs: Infinity });
      setImmediate(() => process.exit(7));
    `);
    expect(ended).toMatchObject({ code: 7, signal: null, stderr: '' });
  });

  it('with a pending operation ends when an exception is not caught', async () => {
    const ended = await scripts.run(
      `${alone} ${stuck} setImmediate(() => { throw new Error('oops'); });`,
    );
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('oops') as string });
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('with a pending operation ends on %s', async (signal) => {
    const running = scripts.start(`${alone} ${stuck} setImmediate(() => say('pending'));`);
    await running.said('pending');
    running.child.kill(signal);
    expect(await running.ended).toMatchObject({ code: null, signal });
  });

  it('whose thread waits in a blocking call ends on SIGINT', async () => {
    const running = scripts.start(`
      ${alone}
      say('blocking');
      comm.receiveSync(new Float32Array(4), { from: 0, timeoutMs: Infinity });
    `);
    await running.said('blocking');
    running.child.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: null, signal: 'SIGINT' });
  });

  it('that handles SIGINT itself can leave with a pending operation', async () => {
    const running = scripts.start(`
      ${alone} ${stuck}
      process.on('SIGINT', () => process.exit(130));
      setImmediate(() => say('pending'));
    `);
    await running.said('pending');
    running.child.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130, stderr: '' });
  });

  it('that closed its communicators exits, even with what it left unawaited', async () => {
    const ended = await scripts.run(`
      ${alone}
      const pending = comm.receive(new Float32Array(4), { from: 0, timeoutMs: 200 }).catch((e) => report(e.code));
      void comm.close().then(() => report('closed'));
    `);
    expect(ended).toMatchObject({ ...well, reports: ['ERR_TIMEOUT', 'closed'] });
  });
});

describe('a worker thread', () => {
  const inWorker = (source: string) =>
    scripts.write(`import { parentPort } from 'node:worker_threads'; ${source}`);

  it('alone may load the addon', async () => {
    const worker = inWorker(
      `parentPort.postMessage((await Communicator.local(2).openRanks())[0].size);`,
    );
    const ended = await scripts.run(`
      import { Worker } from 'node:worker_threads';
      new Worker(${JSON.stringify(worker)}).on('message', report).on('exit', report);
    `);
    expect(ended).toMatchObject({ ...well, reports: [2, 0] });
  });

  it('is one of many that load the addon', async () => {
    const worker = inWorker(`
      const c = Communicator.local(2);
      const [a] = await c.allReduce([1, 2].map((x) => new Float32Array(50_000).fill(x)));
      parentPort.postMessage(a[49_999]);
    `);
    const ended = await scripts.run(`
      import { Worker } from 'node:worker_threads';
      Communicator.local(1);
      const all = Array.from({ length: 8 }, () => new Promise((resolve, reject) => {
        const got = [];
        new Worker(${JSON.stringify(worker)})
          .on('message', (m) => got.push(m)).on('error', reject).on('exit', (code) => resolve([...got, code]));
      }));
      report(await Promise.all(all));
    `);
    expect(ended).toMatchObject({ ...well, reports: [new Array(8).fill([3, 0])] });
  });

  it.each([true, false])(
    'that is terminated in mid-operation is lost to its peers (threads: %s)',
    async (threads) => {
      const place = (rank: number) => `{ name: 't', rank: ${rank}, size: 2, threads: ${threads} }`;
      const worker = inWorker(`
        const comm = await Communicator.join(${place(1)});
        await comm.barrier();
        const never = comm.receive(new Float32Array(1_000_000), { from: 0, timeoutMs: Infinity });
        setImmediate(() => parentPort.postMessage('pending'));
      `);
      const ended = await scripts.run(`
        import { Worker } from 'node:worker_threads';
        import { once } from 'node:events';
        const worker = new Worker(${JSON.stringify(worker)});
        const comm = await Communicator.join(${place(0)});
        const pending = once(worker, 'message');
        await comm.barrier();
        await pending;
        const mine = outcome(comm.allReduce(new Float32Array(10)));
        await worker.terminate();
        report(await mine);
      `);
      expect(ended).toMatchObject({ ...well, reports: [{ code: 'ERR_PEER_LOST', rank: 1 }] });
    },
  );

  it('that waits to join can be terminated', async () => {
    const worker = inWorker(`
      void Communicator.join({ name: 'lonely-${process.pid}', rank: 0, size: 2, timeoutMs: Infinity });
      setImmediate(() => parentPort.postMessage('joining'));
    `);
    const ended = await scripts.run(`
      import { Worker } from 'node:worker_threads';
      import { once } from 'node:events';
      const worker = new Worker(${JSON.stringify(worker)});
      await once(worker, 'message');
      report(await worker.terminate());
    `);
    expect(ended).toMatchObject({ ...well, reports: [1] });
  });
});

describe('kill -9 of every rank', () => {
  // Without those of other MPI jobs of this machine, which come and go; what others left there may go, too.
  const segments = () =>
    readdirSync('/dev/shm').filter((name) => !/^(vader_segment\.|mpich_)/.test(name));
  const expectNothingNew = (before: readonly string[]) =>
    expect(segments().filter((name) => !before.includes(name))).toEqual([]);
  const killAll = async (running: readonly Running[]) => {
    running.forEach(({ child }) => child.kill('SIGKILL'));
    await Promise.all(running.map((one) => one.ended));
  };

  it('leaves nothing in /dev/shm once they have met', { tags: 'smoke' }, async () => {
    const before = segments();
    const running = scripts.startRanks(
      2,
      `
      const comm = await Communicator.world();
      const shared = comm.allocShared('float32', 100_000);
      await comm.allReduce(shared);
      await comm.allReduce(new Float32Array(100_000));
      say('busy');
      for (;;) await comm.allReduce(shared);
      `,
    );
    await Promise.all(running.map((one) => one.said('busy')));
    await killAll(running);
    expectNothingNew(before);
  });

  it('leaves nothing in /dev/shm when they are still waiting', async () => {
    const before = segments();
    const running = scripts.start(`
      void Communicator.join({ name: 'lonely', job: 'kill-${process.pid}', rank: 0, size: 2 });
      setImmediate(() => say('joining'));
    `);
    await running.said('joining');
    await killAll([running]);
    expectNothingNew(before);
  });
});
