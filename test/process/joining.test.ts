// Ranks that meet by name, as processes and as worker threads.
import { afterEach, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

/** Each rank runs `body` with `comm`, `rank` and `size`, in worker threads of one process. */
function inWorkers(size: number, body: string, threads: boolean): string {
  const worker = scripts.write(`
    import { parentPort, workerData } from 'node:worker_threads';
    const { rank, size } = workerData;
    const comm = await Communicator.join({ name: 'w', rank, size, threads: ${threads} });
    ${body}
    await comm.close();
  `);
  return `
    import { Worker } from 'node:worker_threads';
    const exits = Array.from({ length: ${size} }, (_, rank) =>
      new Promise((resolve, reject) => {
        const worker = new Worker(${JSON.stringify(worker)}, { workerData: { rank, size: ${size} } });
        worker.on('error', reject).on('exit', resolve);
      }));
    report(await Promise.all(exits));
  `;
}

const exchange = `
  const mine = new Float64Array(5000).fill(comm.rank + 1);
  await comm.allReduce(mine);
  const got = new Int32Array(1);
  const next = (comm.rank + 1) % comm.size;
  const sending = comm.send(Int32Array.of(comm.rank), { to: next });
  const { source } = await comm.receive(got);
  await sending;
  await comm.barrier();
  report({ rank: comm.rank, size: comm.size, sum: mine[4999], got: got[0], source });
`;
const exchanged = (size: number) =>
  Array.from({ length: size }, (_, rank) => {
    const previous = (rank + size - 1) % size;
    return { rank, size, sum: (size * (size + 1)) / 2, got: previous, source: previous };
  });

describe('ranks meet by name', () => {
  it('and one that has closed and ended does not disturb the others', async () => {
    const ended = await scripts.runRanks(
      3,
      `
      const comm = await Communicator.world();
      const pids = await comm.allGather(Int32Array.of(process.pid));
      const runs = () => { try { return process.kill(pids[2], 0); } catch { return false; } };
      if (comm.rank < 2) {
        while (runs()) await new Promise(setImmediate);
        // Long enough to wait for its receiver.
        const data = new Int32Array(9000).fill(7);
        if (comm.rank === 0) await comm.send(data, { to: 1 });
        else report(await comm.receive(new Int32Array(9000)));
      }
      await comm.close();
    `,
    );
    ended.forEach((one) => expect(one).toMatchObject(well));
    expect(ended[1]!.reports).toEqual([{ source: 0, count: 9000 }]);
  });

  it.each([true, false])('as worker threads (threads: %s)', { tags: 'smoke' }, async (threads) => {
    const ended = await scripts.run(inWorkers(3, exchange, threads));
    expect(ended).toMatchObject(well);
    expect(ended.reports.slice(0, 3)).toEqual(expect.arrayContaining(exchanged(3)));
    expect(ended.reports[3]).toEqual([0, 0, 0]);
  });

  it('twice under one name, one after the other, and several names at once', async () => {
    const ended = await scripts.runRanks(
      2,
      `
      const place = { rank: Number(process.env.GRADLINK_RANK), size: 2 };
      for (let i = 0; i < 3; ++i) {
        const comm = await Communicator.join({ name: 'again', ...place });
        await comm.barrier();
        await comm.close();
      }
      const both = await Promise.all(['x', 'y'].map((name) => Communicator.join({ name, ...place })));
      const sums = await Promise.all(both.map((comm) => comm.allReduce(Int32Array.of(1))));
      report(sums.map((sum) => sum[0]));
      await Promise.all(both.map((comm) => comm.close()));
      `,
    );
    ended.forEach((one) => expect(one).toMatchObject({ ...well, reports: [[2, 2]] }));
  });

  it('without a launcher as a world of one', async () => {
    const ended = await scripts.run(
      `const comm = await Communicator.world();
       report([comm.size, comm.rank, (await comm.allReduce(Int32Array.of(7)))[0]]);`,
      { GRADLINK_JOB: '', GRADLINK_RANK: '', GRADLINK_SIZE: '' },
    );
    expect(ended).toMatchObject({ ...well, reports: [[1, 0, 7]] });
  });
});
