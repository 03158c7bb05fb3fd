// Gathering from neighbours and averaging in pairs, in worlds of processes that hold several GPUs each.
import { afterEach, describe, expect, it } from 'vitest';

import { GpuScripts } from '../support/gpu-processes.js';
import { needs, reportsOf, sizeOf, world } from '../support/world-groups.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** All elements of each buffer. */
const allOf = `
  const single = counts[process_] === 0;
  const allOf = async (buffers) =>
    Promise.all(buffers.map(async (one) => Array.from(await one.copyTo())));
  // Rank r has r + 1 elements: r, r + 10, r + 20, …
  const mine = await Promise.all(group.gpus.map(async (gpu, i) => {
    const buffer = DeviceBuffer.alloc(gpu, 'float32', ranks[i] + 1);
    await buffer.copyFrom(Float32Array.from({ length: ranks[i] + 1 }, (_, at) => ranks[i] + 10 * at));
    return buffer;
  }));
`;
const elementsOf = (rank: number): number[] =>
  Array.from({ length: rank + 1 }, (_, at) => rank + 10 * at);

describe('gathering from neighbours in a world of processes with several GPUs', () => {
  it.for([{ counts: [3] }, { counts: [2, 2] }, { counts: [1, 0, 2] }])(
    'follows the topology and lists, $counts GPUs in the processes',
    async ({ counts }, context) => {
      const size = sizeOf(counts);
      needs(size, context);
      const source = `${world(counts)} ${allOf}
        // A ring to the right; then each rank sends to the two before it, of which it has the nearer one last.
        group.setTopology(ringGraph(size, 'right'));
        const count = (rank) => ((rank + size) % size) + 1;
        const lists = (rank) => {
          const srcRanks = [(rank + 2) % size, (rank + 1) % size];
          return {
            srcRanks,
            dstRanks: [(rank + size - 1) % size, (rank + size - 2) % size],
            srcCounts: srcRanks.map(count),
          };
        };
        const before = (rank) => ({ srcRanks: [(rank + size - 1) % size], dstRanks: [(rank + 1) % size], srcCounts: [count(rank - 1)] });
        const given = (of) => (single ? of(ranks[0]) : { neighbors: ranks.map(of) });
        const [data] = single ? mine : [mine];
        const listed = await group.neighborAllGather(data, given(lists));
        report(await allOf(single ? [listed] : listed));
        const out = group.gpus.map((gpu, i) => DeviceBuffer.alloc(gpu, 'float32', count(ranks[i] - 1)));
        const blocking = group.neighborAllGatherSync(data, { ...given(before), out: single ? out[0] : out });
        report((single ? blocking === out[0] : blocking.every((one, i) => one === out[i])) && (await allOf(out)));
        const alike = await buffersOf(group, (i) => ranks[i], 2);
        const followed = await group.neighborAllGather(single ? alike[0] : alike);
        report(await allOf(single ? [followed] : followed));
        await group.barrier();
        await group.close();
      `;
      const reports = await reportsOf(scripts, counts, source);
      let rank = 0;
      for (const [at, count] of counts.entries()) {
        const held = Array.from({ length: Math.max(count, 1) }, () => rank++);
        const beyond = (one: number, by: number): number => (one + by + size) % size;
        expect(reports[at]).toEqual([
          held.map((one) => [...elementsOf(beyond(one, 2)), ...elementsOf(beyond(one, 1))]),
          held.map((one) => elementsOf(beyond(one, -1))),
          held.map((one) => [beyond(one, -1), beyond(one, -1)]),
        ]);
      }
    },
  );
});

describe('pairs in a world of processes with several GPUs', () => {
  it.for([{ counts: [4] }, { counts: [2, 2] }, { counts: [1, 0, 2] }])(
    'average, $counts GPUs in the processes',
    async ({ counts }, context) => {
      needs(4, context);
      const source = `${world(counts)}
        const single = counts[process_] === 0;
        const peers = [[1, 0, 3, 2], [2, 3, 0, 1], [3, null, null, 0]];
        for (const [turn, peer] of peers.entries()) {
          const data = await buffersOf(group, (i) => 10 ** ranks[i]);
          const out = turn === 1 ? {} : { out: await buffersOf(group, () => 0) };
          const weights = turn === 2 ? { selfWeight: 2, pairWeight: 3 } : {};
          if (single) {
            const [own] = ranks;
            const into = out.out === undefined ? {} : { out: out.out[0] };
            report(peer[own] === null ? [10 ** own] : await lasts([
              turn === 0
                ? group.pairGossipSync(data[0], { peer: peer[own], ...weights, ...into })
                : await group.pairGossip(data[0], { peer: peer[own], ...weights, ...into }),
            ]));
            continue;
          }
          const pairs = ranks.map((rank) => peer[rank] === null ? null : { peer: peer[rank], ...weights });
          const results = turn === 0
            ? group.pairGossipSync(data, { pairs, ...out })
            : await group.pairGossip(data, { pairs, ...out });
          report(await lasts(results));
        }
        await group.close();
      `;
      const reports = (await reportsOf(scripts, counts, source)) as number[][][];
      const turns = [0, 1, 2].map((turn) => reports.flatMap((of) => of[turn]!));
      expect(turns).toEqual([
        [5.5, 5.5, 550, 550],
        [50.5, 505, 50.5, 505],
        [3002, 10, 100, 2003],
      ]);
    },
  );
});
