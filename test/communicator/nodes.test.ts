import { afterEach, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { exponentialTwoGraph } from '../../lib/topology/index.js';

let group: LocalGroup | undefined;
let ranks: readonly Communicator[] = [];
const make = async (n: number) => {
  group = Communicator.local(n);
  ranks = await group.openRanks();
};
afterEach(async () => {
  await group?.close();
  group = undefined;
});

/** Small integers that differ by rank and place. */
const inputs = (n: number, length: number) =>
  Array.from({ length: n }, (_, rank) =>
    Float64Array.from({ length }, (__, i) => ((rank + 1) * 12 * ((i % 5) + 1)) % 256),
  );

describe('hierarchicalNeighborAllReduce', () => {
  const places = [
    [1, 1],
    [2, 1],
    [2, 2],
    [4, 2],
    [6, 2],
    [6, 3],
    [7, 1],
  ] as const;

  it.each(places)('averages over nodes: %i ranks, %i on each', async (n, perNode) => {
    await make(n);
    const nodes = n / perNode;
    const graph = exponentialTwoGraph(nodes);
    await Promise.all(ranks.map((one) => one.setMachineTopology(graph, { ranksPerNode: perNode })));
    for (const length of [1, 9001]) {
      const datas = inputs(n, length);
      const want = ranks.map((_, rank) => {
        const node = Math.floor(rank / perNode);
        const members = [node, ...graph.sources(node)].flatMap((one) =>
          Array.from({ length: perNode }, (__, local) => one * perNode + local),
        );
        return datas[0]!.map(
          (__, i) => members.reduce((sum, one) => sum + datas[one]![i]!, 0) / members.length,
        );
      });
      const out = datas.map(() => new Float64Array(length));
      await Promise.all(
        ranks.map((one, rank) =>
          one.hierarchicalNeighborAllReduce(datas[rank]!, { out: out[rank]! }),
        ),
      );
      expect(out).toEqual(want);
      expect(datas).toEqual(inputs(n, length));
      await Promise.all(ranks.map((one, rank) => one.hierarchicalNeighborAllReduce(datas[rank]!)));
      expect(datas).toEqual(want);
    }
  });

  it('takes weights of nodes, with other numbers of sources than of destinations', async () => {
    await make(6);
    await Promise.all(ranks.map((one) => one.setMachineTopology(undefined, { ranksPerNode: 2 })));
    const weights = [
      { selfWeight: 1, srcMachineWeights: {}, dstMachineWeights: [1, 2] },
      { selfWeight: 1, srcMachineWeights: { 0: 0.5 }, dstMachineWeights: { 2: 2 } },
      { selfWeight: 0, srcMachineWeights: { 0: 1, 1: 1 }, dstMachineWeights: [] },
    ];
    const datas = [1, 3, 10, 30, 100, 300].map((value) => Float32Array.of(value));
    await Promise.all(
      ranks.map((one, rank) =>
        one.hierarchicalNeighborAllReduce(datas[rank]!, weights[Math.floor(rank / 2)]),
      ),
    );
    expect(datas.map(([value]) => value)).toEqual([2, 2, 21, 21, 42, 42]);
  });

  it('needs nodes, and equal ones', async () => {
    await make(3);
    const data = new Float32Array(1);
    await expect(ranks[0]!.hierarchicalNeighborAllReduce(data)).rejects.toThrow(/no nodes yet/);
    await expect(ranks[0]!.setMachineTopology(undefined, { ranksPerNode: 2 })).rejects.toThrow(
      /a divisor of the 3 ranks/,
    );
  });
});
