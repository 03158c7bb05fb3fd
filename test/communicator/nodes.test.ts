import { describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import { exponentialTwoGraph } from '../../lib/topology/index.js';
import { errorWith } from '../support/errors.js';
import { codeOf, ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();
let ranks: readonly Communicator[] = [];
const make = async (n: number) => {
  ranks = await open(n);
};

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
    await expect(ranks[0]!.hierarchicalNeighborAllReduce(data)).rejects.toThrow(
      errorWith('ERR_UNSUPPORTED', /setMachineTopology/),
    );
    await expect(ranks[0]!.setMachineTopology(undefined, { ranksPerNode: 2 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /3 ranks.*ranksPerNode.*2/),
    );
  });

  it('is ERR_MISMATCH on every rank where ranks differ in ranksPerNode', async () => {
    await make(6);
    const ended = await Promise.allSettled(
      ranks.map((one, rank) =>
        one.setMachineTopology(undefined, { ranksPerNode: rank === 4 ? 3 : 2, timeoutMs }),
      ),
    );
    expect(ended.map(codeOf)).toEqual(ranks.map(() => 'ERR_MISMATCH'));
    await average(2);
  });
});

/** Long enough that nobody who hears of a failure at once meets it. */
const timeoutMs = 600_000;

/** New nodes, and an average over all ranks of each and its source. */
async function average(perNode: number): Promise<void> {
  await Promise.all(
    ranks.map((one) => one.setMachineTopology(undefined, { ranksPerNode: perNode })),
  );
  const got = await Promise.all(
    ranks.map((one) => one.hierarchicalNeighborAllReduce(Float64Array.of(7))),
  );
  expect(got).toEqual(ranks.map(() => Float64Array.of(7)));
}

interface Different {
  readonly data?: Float32Array;
  readonly selfWeight?: number;
  readonly srcMachineWeights?: Record<number, number>;
  readonly dstMachineWeights?: number[];
}

describe('a mismatch within hierarchicalNeighborAllReduce', () => {
  const mismatches: Record<string, (rank: number) => Different> = {
    'in one node': (rank) => (rank === 3 ? { data: new Float32Array(2) } : {}),
    'between nodes': (rank) => (rank > 3 ? { data: new Float32Array(2) } : {}),
    'of who sends to whom': (rank) =>
      rank > 3 ? { selfWeight: 1, srcMachineWeights: {}, dstMachineWeights: [] } : {},
  };
  it.each(Object.entries(mismatches))(
    'reaches all ranks, which can go on: %s',
    async (_, make6) => {
      await make(6);
      await Promise.all(ranks.map((one) => one.setMachineTopology(undefined, { ranksPerNode: 2 })));
      const call = (one: Communicator, rank: number) => {
        const { data = new Float32Array(3), ...weights } = make6(rank);
        return one.hierarchicalNeighborAllReduce(data, { ...weights, timeoutMs });
      };
      const ended = await Promise.allSettled(ranks.map(call));
      expect(ended.map(codeOf)).toEqual(ranks.map(() => 'ERR_MISMATCH'));
      for (const one of ended) {
        expect((one as PromiseRejectedResult).reason).toMatchObject({
          op: 'hierarchicalNeighborAllReduce',
          usable: true,
          message: expect.stringMatching(
            /^hierarchicalNeighborAllReduce: rank \d: .*; await setMachineTopology/s,
          ) as string,
        });
      }
      // Nobody is left behind in one that the others do not make.
      const after = await Promise.allSettled(
        ranks.map((one) => one.hierarchicalNeighborAllReduce(new Float32Array(3), { timeoutMs })),
      );
      expect(after.map(codeOf)).toEqual(ranks.map(() => 'ERR_UNSUPPORTED'));
      await average(3);
    },
  );

  it('and with calls behind it: they end too', async () => {
    await make(4);
    await Promise.all(ranks.map((one) => one.setMachineTopology(undefined, { ranksPerNode: 2 })));
    const ended = await Promise.allSettled(
      ranks.flatMap((one, rank) =>
        [rank === 0 ? 2 : 3, 5, 6].map((length) =>
          one.hierarchicalNeighborAllReduce(new Float32Array(length), { timeoutMs }),
        ),
      ),
    );
    const each = ['ERR_MISMATCH', 'ERR_UNSUPPORTED', 'ERR_UNSUPPORTED'];
    expect(ended.map(codeOf)).toEqual(ranks.flatMap(() => each));
    await average(2);
  });

  it('leaves nobody usable where a rank does not come', async () => {
    await make(4);
    await Promise.all(ranks.map((one) => one.setMachineTopology(undefined, { ranksPerNode: 2 })));
    const came = ranks.filter((one) => one.rank !== 1);
    const ended = await Promise.allSettled(
      came.map((one) =>
        one.hierarchicalNeighborAllReduce(new Float32Array(3), {
          timeoutMs: one.rank === 0 ? 50 : timeoutMs,
        }),
      ),
    );
    expect(ended.map(codeOf)).toEqual(['ERR_TIMEOUT', 'ERR_TIMEOUT', 'ERR_TIMEOUT']);
    const after = await Promise.allSettled(ranks.map((one) => one.barrier()));
    expect(after.map(codeOf)).toEqual(ranks.map(() => 'ERR_ABORTED'));
  });

  it('tells the other nodes where the rank that speaks for a node does not come', async () => {
    await make(6);
    await Promise.all(ranks.map((one) => one.setMachineTopology(undefined, { ranksPerNode: 2 })));
    const came = ranks.filter((one) => one.rank !== 2);
    const ended = await Promise.allSettled(
      came.map((one) =>
        one.hierarchicalNeighborAllReduce(new Float32Array(3), {
          timeoutMs: one.rank === 3 ? 50 : timeoutMs,
        }),
      ),
    );
    expect(ended.map(codeOf)).toEqual(came.map(() => 'ERR_TIMEOUT'));
    for (const one of ended) {
      const { reason } = one as PromiseRejectedResult;
      expect(reason).toMatchObject({
        rank: 3,
        usable: false,
        message: expect.stringMatching(
          /^hierarchicalNeighborAllReduce: rank 3: .*waiting/s,
        ) as string,
      });
    }
  });
});
