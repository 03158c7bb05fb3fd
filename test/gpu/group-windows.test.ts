// Windows of worlds whose processes hold several GPUs each.
import { afterEach, describe, expect, it } from 'vitest';

import { GpuScripts } from '../support/gpu-processes.js';
import { needs, reportsOf, sizeOf, world } from '../support/world-groups.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** A window of each rank held here, of what its GPU is given; a Communicator's too. */
const opened = `
  const windowsOf = async (valueOf, options, length = 100) => {
    const data = await buffersOf(group, (i) => valueOf(ranks[i]), length);
    return counts[process_] === 0
      ? [await group.createWindow(data[0], options)]
      : group.createWindow(data, options);
  };
  const arrays = (windows) => lasts(windows.map((one) => one.array));
  const each = (windows, body) => Promise.all(windows.map((one, i) => body(one, ranks[i])));
`;

const shapes = [{ counts: [4] }, { counts: [2, 2] }, { counts: [1, 0, 2] }, { counts: [3, 1] }];

describe('windows of a world of processes with several GPUs', () => {
  it.for(shapes)(
    'are written and read by ranks of any process, $counts GPUs in the processes',
    async ({ counts }, context) => {
      const size = sizeOf(counts);
      needs(size, context);
      const source = `${world(counts)} ${opened}
        group.setTopology(ringGraph(size));
        const windows = await windowsOf((rank) => 10 ** rank, { zeroInit: true });
        report(windows.map((one) => [one.sources, one.destinations]));
        // Everybody writes, some of it twice; then each takes the average of its own and what came.
        await each(windows, (one) => one.put());
        await each(windows, (one) => one.accumulate());
        await group.barrier();
        report(windows.map((one) => one.versions()));
        await each(windows, (one) => one.update());
        report(await arrays(windows));
        await group.barrier();
        // Read, with weights.
        await each(windows, (one) => one.get({ srcWeights: { [one.sources[0]]: 2 } }));
        await each(windows, (one) => one.update({ selfWeight: 0, srcWeights: { [one.sources[0]]: 1 }, out: undefined }));
        await group.barrier();
        for (const one of windows) await one.free();
        report((await outcome(windows[0].put())).code);
        await group.close();
      `;
      const reports = await reportsOf(scripts, counts, source);
      const sources = (rank: number): number[] =>
        [(rank + 1) % size, (rank + size - 1) % size].sort((a, b) => a - b);
      const average = (rank: number): number =>
        (10 ** rank + sources(rank).reduce((sum, one) => sum + 2 * 10 ** one, 0)) / 3;
      let rank = 0;
      for (const [at, count] of counts.entries()) {
        const held = Array.from({ length: Math.max(count, 1) }, () => rank++);
        const [neighbors, versions, averages, code] = reports[at]!;
        expect(neighbors).toEqual(held.map((one) => [sources(one), sources(one)]));
        expect(versions).toEqual(
          held.map((one) => Object.fromEntries(sources(one).map((from) => [from, 1]))),
        );
        expect(averages).toEqual(held.map((one) => expect.closeTo(average(one), 2) as number));
        expect(code).toBe('ERR_CLOSED');
      }
    },
  );

  it('have locks between ranks of one process and of others', async (context) => {
    needs(3, context);
    // Ranks 0 and 1 here, 2 there. Each counts up what rank 1 shows, in its own time.
    const source = `${world([2, 0])} ${opened}
      group.setTopology(exponentialTwoGraph(3));
      const windows = await windowsOf(() => 0);
      const seen = async (one, from) => {
        await one.get({ srcWeights: { [from]: 1 } });
        const out = DeviceBuffer.alloc(one.array.device, 'float32', 100);
        await one.update({ selfWeight: 0, srcWeights: { [from]: 1 }, out });
        return lasts([out]);
      };
      let inside = 0;
      const mine = windows.filter((_, i) => ranks[i] !== 1);
      for (let turn = 0; turn < 5; ++turn) {
        await Promise.all(mine.map((one) => one.withMutex(async () => {
          ++inside;
          await seen(one, 1);
          --inside;
        }, { ranks: [1] })));
      }
      report(inside);
      await group.barrier();
      // Rank 0's lock of rank 1's memory is taken; rank 1 keeps it from rank 0, not from rank 2.
      if (process_ === 0) {
        await windows[0].withMutex(async () => {
          const waited = await outcome(windows[1].withMutex(() => 'got it', { forSelf: true, ranks: [0], timeoutMs: 50 }));
          report([waited.code, waited.rank]);
          report(await windows[1].withMutex(() => 'got it', { forSelf: true, ranks: [2] }));
        }, { ranks: [1] });
        report(await windows[1].withMutex(() => 'got it', { forSelf: true, ranks: [0] }));
      }
      await group.barrier();
      for (const one of windows) await one.free();
      await group.close();
    `;
    expect(await reportsOf(scripts, [2, 0], source)).toEqual([
      [0, ['ERR_TIMEOUT', 0], 'got it', 'got it'],
      [0],
    ]);
  });
});
