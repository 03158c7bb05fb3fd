// Averaging with neighbours between processes: by topology, over nodes, and one-sided.
import { afterEach, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { everything, rightWorld, wholeWorld } from '../support/world.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

async function run(size: number, body: string): Promise<readonly (readonly unknown[])[]> {
  const ended = await scripts.runRanks(
    size,
    `const comm = await Communicator.world(); const { rank, size } = comm; ${body} await comm.close();`,
  );
  ended.forEach((one) => expect(one).toMatchObject(well));
  return ended.map(({ reports }) => reports);
}

describe('neighbours between processes', () => {
  it.each([1, 2, 3, 4, 7])('compute with everybody: %i ranks', async (size) => {
    const ended = await scripts.runRanks(size, everything('shm'));
    ended.forEach((one) => expect(one).toMatchObject(well));
    expect(wholeWorld(ended.flatMap(({ reports }) => reports))).toEqual(rightWorld(size, 'shm'));
  });

  it('reach into a process that does nothing but wait for another', async () => {
    const reports = await run(
      3,
      `
      const window = await comm.createWindow(new Float64Array(100_000).fill(rank), { zeroInit: true });
      if (rank === 0) {
        // Blocks its thread: what comes needs nothing of it.
        comm.receiveSync(new Int8Array(1), { from: 1 });
        report(window.versions());
        const { array } = window;
        await window.update({ selfWeight: 0, srcWeights: { 1: 1, 2: 1 } });
        report([array[0], array[99_999]]);
      } else {
        for (let i = 1; i <= 5; ++i) await window.put(new Float64Array(100_000).fill(i * rank));
        if (rank === 2) await comm.send(new Int8Array(1), { to: 1 });
        else {
          await comm.receive(new Int8Array(1), { from: 2 });
          await comm.send(new Int8Array(1), { to: 0 });
        }
      }
      await window.free();
    `,
    );
    expect(reports).toEqual([[{ 1: 5, 2: 5 }, [15, 15]], [], []]);
  });

  it('never show half a put, and lose nothing of what was accumulated', async () => {
    const rounds = 300;
    const reports = await run(
      3,
      `
      const window = await comm.createWindow(new Float64Array(20_000), { zeroInit: true, associatedP: true });
      let torn = 0;
      for (let i = 1; i <= ${rounds}; ++i) {
        window.accumulateSync(new Float64Array(20_000).fill(i));
        const out = window.updateThenCollectSync();
        const first = out[0];
        for (let at = 0; at < out.length; at += 997) if (out[at] !== first) torn++;
      }
      await comm.barrier();
      window.updateThenCollectSync();
      report([torn, window.array[7]]);
      await window.free();
    `,
    );
    const sum = (rounds * (rounds + 1)) / 2;
    expect(reports.map(([one]) => one)).toEqual(new Array(3).fill([0, 2 * sum]));
  });
});
