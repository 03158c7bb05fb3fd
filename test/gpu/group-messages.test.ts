// Messages and neighbours in worlds of processes that hold several GPUs each.
import { afterEach, describe, expect, it } from 'vitest';

import { GpuScripts } from '../support/gpu-processes.js';
import { needs, reportsOf, sizeOf, world } from '../support/world-groups.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

describe('messages of a world of processes with several GPUs', () => {
  it('go between any two ranks, of one process too', async (context) => {
    needs(4, context);
    // Around the ring, of all ranks at once; then two in a row from rank 1 to rank 2.
    const source = `${world([2, 2])}
      const mine = await buffersOf(group, (i) => ranks[i] + 1);
      const got = await buffersOf(group, () => 0);
      await group.sendReceive({
        send: ranks.map((from, i) => ({ from, to: (from + 1) % size, data: mine[i] })),
        receive: ranks.map((to, i) => ({ from: (to + size - 1) % size, to, data: got[i] })),
      });
      report(await lasts(got));
      const ends = { from: 1, to: 2 };
      if (process_ === 0) {
        await group.send(mine[1], ends);
        await group.send(got[1], ends);
      } else {
        await Promise.all([group.receive(mine[0], ends), group.receive(got[0], ends)]);
        report(await lasts([mine[0], got[0]]));
      }
      await group.close();
    `;
    expect(await reportsOf(scripts, [2, 2], source)).toEqual([
      [[4, 1]],
      [
        [2, 3],
        [2, 1],
      ],
    ]);
  });

  it('meet those of processes that hold one rank', async (context) => {
    needs(3, context);
    const source = `${world([2, 0])}
      const [data] = await buffersOf(group, () => process_ + 1);
      if (process_ === 0) {
        await group.send(data, { from: 0, to: 2 });
        await group.receive(data, { from: 2, to: 0 });
      } else {
        const [got] = await buffersOf(group, () => 0);
        report(await group.receive(got, { from: 0 }));
        await group.send(got, { to: 0 });
      }
      report(await last(data));
      await group.close();
    `;
    expect(await reportsOf(scripts, [2, 0], source)).toEqual([[1], [{ source: 0, count: 100 }, 2]]);
  });
});

describe('neighbours in a world of processes with several GPUs', () => {
  it.for([{ counts: [3] }, { counts: [2, 2] }, { counts: [1, 0, 2] }])(
    'average over the topology and by weights, $counts GPUs in the processes',
    async ({ counts }, context) => {
      const size = sizeOf(counts);
      needs(size, context);
      const source = `${world(counts)}
        const single = counts[process_] === 0;
        const average = async (optionsOf = () => ({})) => {
          const data = await buffersOf(group, (i) => ranks[i] + 1);
          if (single) return lasts([await group.neighborAllReduce(data[0], optionsOf(ranks[0]))]);
          const options = ranks.map(optionsOf);
          const given = Object.keys(options[0]).length === 0 ? {} : { neighbors: options };
          const out = await buffersOf(group, () => 0);
          const results = await group.neighborAllReduce(data, { ...given, out });
          if (results[0] !== out[0] || (await last(data[0])) !== ranks[0] + 1) report('in place');
          return lasts(results);
        };
        report([await average(), ranks.map((rank) => {
          const sources = group.topology.sources(rank);
          return (rank + 1 + sources.reduce((sum, one) => sum + one + 1, 0)) / (sources.length + 1);
        })]);
        group.setTopology(ringGraph(size, 'right'));
        report([await average(), ranks.map((rank) => (rank + 1 + ((rank + size - 1) % size) + 1) / 2)]);
        // Each takes twice what the next rank sends, which sends three times what it has.
        report([
          await average((rank) => ({
            selfWeight: 0.5,
            srcWeights: { [(rank + 1) % size]: 2 },
            dstWeights: { [(rank + size - 1) % size]: 3 },
          })),
          ranks.map((rank) => (rank + 1) / 2 + 6 * (((rank + 1) % size) + 1)),
        ]);
        const { code } = await outcome(average((rank) => ({
          selfWeight: 1,
          srcWeights: rank === 0 ? { 1: 1 } : {},
          dstWeights: {},
        })));
        report([code, 'ERR_MISMATCH']);
        await group.barrier();
        await group.close();
      `;
      for (const reports of await reportsOf(scripts, counts, source)) {
        expect(reports).toHaveLength(4);
        for (const one of reports) {
          const [got, want] = one as [unknown, number[] | string];
          expect(got).toEqual(
            typeof want === 'string'
              ? want
              : want.map((value) => expect.closeTo(value, 5) as number),
          );
        }
      }
    },
  );
});
