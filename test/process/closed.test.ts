// What is closed is gone: memory, descriptors and threads are given back before close() and free() resolve, without the collector.
import { afterEach, describe, expect, it } from 'vitest';

import { startJob } from '../distributed/support.js';
import { expectGone, script } from '../support/held.js';
import type { Kind } from '../support/held.js';
import { flavours, mpirunOf, startJob as startMpiJob } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';
import { freePort, placeOf, startOverTcp } from '../support/tcp.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

const world = `const comm = await Communicator.world();`;
const closing = `await comm.close();`;

const alone: Record<string, Kind> = {
  'a local group': {
    open: `
      const group = Communicator.local(4);
      const arrays = Array.from({ length: 4 }, () => group.allocShared('float32', n / 4).fill(1));
      await group.allReduce(arrays);
      return () => group.close();`,
  },
  'ranks of a local group': {
    open: `
      const group = Communicator.local(2);
      const ranks = await group.openRanks();
      const arrays = ranks.map((one) => one.allocShared('float32', n).fill(1));
      await Promise.all(ranks.map((one, i) => one.allReduce(arrays[i])));
      await Promise.all(ranks.map((one) => one.createWindow(data)));
      return () => group.close();`,
  },
  'a window between threads': {
    before: `
      const ranks = await Communicator.local(2).openRanks();
      // Starts the threads of the two, which stay.
      await Promise.all(ranks.map((one) => one.barrier()));`,
    open: `
      const windows = await Promise.all(ranks.map((one) => one.createWindow(data)));
      await Promise.all(windows.map((one) => one.put()));
      return () => Promise.all(windows.map((one) => one.free()));`,
  },
  ...Object.fromEntries(
    ['local', 'device', 'allreduce'].map((type) => [
      `a store of type ${type}`,
      {
        open: `
          const kv = await KVStore.create('${type}', { devices: 2 });
          await kv.init('w', data);
          await kv.push('w', [data, data]);
          await kv.pull('w', data);
          return () => kv.close();`,
      } satisfies Kind,
    ]),
  ),
  'a timeline': {
    before: `
      import { mkdtempSync, rmSync } from 'node:fs';
      const folder = mkdtempSync('/tmp/gradlink-closed-');
      let count = 0;`,
    open: `
      const group = Communicator.local(2);
      group.startTimeline(folder + '/trace' + count++ + '.json');
      await group.allReduce([data.slice(0, 8), data.slice(0, 8)]);
      return () => group.close();`,
    after: `rmSync(folder, { recursive: true });`,
  },
  'an aborted group': {
    open: `
      const group = Communicator.local(2);
      const arrays = [1, 2].map(() => group.allocShared('float32', n));
      group.abort('for a test');
      return () => group.close();`,
  },
};

const inTwo: Record<string, Kind> = {
  'a world': {
    open: `
      const comm = await Communicator.world();
      await comm.allReduce(comm.allocShared('float32', n));
      await comm.allReduce(data);
      await comm.createWindow(data);
      return () => comm.close();`,
  },
  'a part': {
    before: world,
    open: `
      const part = await comm.split(0, comm.rank);
      await part.allReduce(part.allocShared('float32', n));
      await part.allReduce(data);
      return () => part.close();`,
    after: closing,
  },
  'a window': {
    before: world,
    open: `
      const window = await comm.createWindow(data);
      await window.put();
      return () => window.free();`,
    after: closing,
  },
  'a store of type allreduce': {
    open: `
      const kv = await KVStore.create('allreduce');
      await kv.init('w', data);
      await kv.push('w', data);
      await kv.pull('w', data);
      return () => kv.close();`,
  },
};

describe('what is given back by', () => {
  it.each(Object.entries(alone))('%s: all of it', async (_, kind) => {
    expectGone([await scripts.run(script(kind))]);
  });

  it.each(Object.entries(inTwo))('%s between processes: all of it', async (_, kind) => {
    // What a rank has of another's memory goes when that rank frees it, so both meet before they count.
    const meet = kind.before === world ? `await comm.barrier();` : '';
    const ranks = scripts.startRanks(2, script(kind, meet));
    const segments = kind.before === world ? 1 : 0;
    expectGone(await Promise.all(ranks.map((one) => one.ended)), { segments });
  });

  it('a part of a world over TCP: all of it', async () => {
    const ranks = await startOverTcp(scripts, 2, script(inTwo['a part']!, `await comm.barrier();`));
    expectGone(await Promise.all(ranks.map((one) => one.ended)), { segments: 1 });
  });

  it.for(
    flavours.flatMap((flavour) =>
      (['a part', 'a window'] as const).map((what) => [what, flavour] as const),
    ),
  )('%s of a world over MPI, %s: all of it', async ([what, flavour], context) => {
    const before = `const comm = await Communicator.world({ backend: 'mpi' });`;
    const source = script({ ...inTwo[what]!, before }, `await comm.barrier();`);
    const ended = await startMpiJob(scripts, mpirunOf(flavour, context), 2, source).ended;
    expect(ended.reports).toHaveLength(2);
    const each = ended.reports.map((one) => ({ ...ended, reports: [one] }));
    expectGone(each, { segments: what === 'a part' ? 1 : 0 });
  });

  it.each(['dist_sync', 'dist_async'])('a store of type %s: all of it', async (type) => {
    const source = script({
      open: `
        const kv = await KVStore.create('${type}');
        await kv.init('w', data);
        await kv.push('w', data);
        await kv.pull('w', data);
        return () => kv.close();`,
    });
    const job = startJob(scripts, { workers: 2, servers: 1 }, source);
    const { workers } = await job.ended;
    expectGone(workers);
  });

  it('worker threads of two processes that are terminated: all of it', async () => {
    const worker = scripts.write(`
      import { parentPort } from 'node:worker_threads';
      const comm = await Communicator.world();
      const part = await comm.split(0, comm.rank);
      await part.allReduce(part.allocShared('float32', 2 ** 20));
      await part.createWindow(new Float32Array(2 ** 20));
      const kv = await KVStore.create('device', { devices: 2 });
      await kv.init('w', new Float32Array(2 ** 20));
      const stuck = comm.receive(new Float32Array(4), { from: 1 - comm.rank, timeoutMs: Infinity });
      stuck.catch(() => undefined);
      parentPort.postMessage('up');
    `);
    const source = script({
      before: `import { Worker } from 'node:worker_threads';`,
      open: `
        const worker = new Worker(${JSON.stringify(worker)});
        await new Promise((up) => worker.once('message', up));
        return () => worker.terminate();`,
    });
    const ranks = scripts.startRanks(2, source);
    expectGone(await Promise.all(ranks.map((one) => one.ended)), { heap: true });
  });
});

/** Runs the script that follows with few descriptors. */
const few = ['bash', '-c', 'ulimit -n 64; exec "$0" "$@"'];

/** `fill(left)` opens files until the limit, but for so many; `grown(by)` is there once so many more sockets and segments are. */
const opening = `
  import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
  const fill = (left) => {
    const files = [];
    try { for (;;) files.push(openSync('/dev/null')); } catch { files.splice(0, left).forEach((file) => closeSync(file)); }
  };
  const count = () => readdirSync('/proc/self/fd').filter((fd) => {
    try { return /^socket:|memfd:gradlink/.test(readlinkSync('/proc/self/fd/' + fd)); } catch { return false; }
  }).length;
  const before = count();
  const grown = async (by) => { while (count() < before + by) await new Promise(setImmediate); };
  const join = () => outcome(Communicator.world({ timeoutMs: Infinity }));
`;

describe('a meeting without free descriptors ends at once', () => {
  const tcp = (rank: number, port: number) => placeOf(rank, 2, port);
  const shm = (rank: number, port: number) => ({
    GRADLINK_JOB: `few-${process.pid}-${port}`,
    GRADLINK_RANK: String(rank),
    GRADLINK_SIZE: '2',
  });
  /** Of a rank that leads: its listener, and both files of the segment, one of them opened twice. */
  const ofLeader = 4;
  const lead = (then: string, by = ofLeader) =>
    `${opening} const joined = join(); await grown(${by}); ${then}; say('leading'); report(await joined);`;

  it.each([
    ['processes of one host', shm, ofLeader],
    ['ranks over TCP', tcp, 1],
  ] as const)('where the rank that leads has none: %s', async (_, placed, by) => {
    const port = await freePort();
    const leader = scripts.startUnder(few, lead('fill(0)', by), placed(0, port));
    await leader.said('leading');
    scripts.start(`${opening} await join();`, placed(1, port));
    expect((await leader.ended).reports).toMatchObject([{ code: 'ERR_SYSTEM', rank: 0 }]);
  });

  it('where a rank cannot take what the leader hands over', async () => {
    const port = await freePort();
    const leader = scripts.start(lead(''), shm(0, port));
    await leader.said('leading');
    // One for the socket, and one of the two that come.
    const guest = scripts.startUnder(
      few,
      `${opening} fill(2); report(await join());`,
      shm(1, port),
    );
    const ends = await Promise.all([leader.ended, guest.ended]);
    for (const { reports } of ends)
      expect(reports).toMatchObject([{ code: 'ERR_SYSTEM', rank: 1 }]);
  });
});
