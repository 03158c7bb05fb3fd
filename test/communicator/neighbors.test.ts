import { describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import { exponentialTwoGraph, meshGrid2DGraph, ringGraph } from '../../lib/topology/index.js';
import type { Topology } from '../../lib/topology/index.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, floats, valuesOf } from '../support/numbers.js';
import { ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();
let ranks: readonly Communicator[] = [];
const make = async (n: number) => {
  ranks = await open(n);
};

const sizes = [1, 2, 3, 4, 7];

/** Small integers that differ by rank and place. */
const valueAt = (rank: number, i: number) => ((rank + 1) * 12 * ((i % 5) + 1)) % 256;
const inputs = (n: number, length: number) =>
  Array.from({ length: n }, (_, rank) =>
    Float64Array.from({ length }, (__, i) => valueAt(rank, i)),
  );

/** What rank r gets by a graph's weights. */
const weighted = (graph: Topology, datas: readonly Float64Array[], rank: number) =>
  datas[0]!.map((_, i) =>
    datas.reduce((sum, data, from) => sum + graph.weight(from, rank) * data[i]!, 0),
  );
/** What rank r gets by averaging over itself and its sources. */
const averaged = (graph: Topology, datas: readonly Float64Array[], rank: number) => {
  const from = [rank, ...graph.sources(rank)];
  return datas[0]!.map((_, i) => from.reduce((sum, s) => sum + datas[s]![i]!, 0) / from.length);
};

describe('neighborAllReduce by a topology', () => {
  it.each(floats)(
    'averages %s, in place and to another array, awaited and blocking',
    async (dtype) => {
      for (const n of sizes) {
        await make(n);
        const graph = exponentialTwoGraph(n);
        const values = Array.from({ length: n }, (_, rank) => [48 * (rank + 1), 12 * n]);
        const rows = values.map((row) => Float64Array.from(row));
        const want = rows.flatMap((_, rank) => [...averaged(graph, rows, rank)]);
        const exact = valuesOf(dtype, arrayOf(dtype, want));
        const fill = () => values.map((row) => arrayOf(dtype, row) as Uint16Array);
        const options = { dtype: dtype as 'float16' };
        const data = fill();
        const out = fill();
        const results = await Promise.all(
          ranks.map((one, rank) =>
            one.neighborAllReduce(data[rank]!, { ...options, out: out[rank]! }),
          ),
        );
        expect(results.every((one, rank) => one === out[rank])).toBe(true);
        expect(out.flatMap((one) => valuesOf(dtype, one))).toEqual(exact);
        expect(data).toEqual(fill());
        // The others' calls are under way when the last one blocks.
        const others = ranks.slice(1).map((one, i) => one.neighborAllReduce(data[i + 1]!, options));
        expect(ranks[0]!.neighborAllReduceSync(data[0]!, options)).toBe(data[0]);
        await Promise.all(others);
        expect(data).toEqual(out);
      }
    },
  );

  it('takes the weights of a weighted topology', async () => {
    for (const n of sizes) {
      await make(n);
      const graph = meshGrid2DGraph(n);
      ranks.forEach((one) => one.setTopology(graph, { weighted: true }));
      const datas = inputs(n, 100);
      const want = datas.map((_, rank) => weighted(graph, datas, rank));
      await Promise.all(ranks.map((one, rank) => one.neighborAllReduce(datas[rank]!)));
      datas.forEach((data, rank) =>
        data.forEach((value, i) => expect(value).toBeCloseTo(want[rank]![i]!, 10)),
      );
    }
  });

  it('takes weights that a rank gives for its sources; those left out count 0', async () => {
    await make(4);
    const datas = [1, 10, 100, 1000].map((value) => Float64Array.of(value));
    await Promise.all(
      ranks.map((one, rank) =>
        one.neighborAllReduce(datas[rank]!, {
          selfWeight: 2,
          srcWeights: { [(rank + 3) % 4]: 3 },
        }),
      ),
    );
    expect(datas.map(([value]) => value)).toEqual([3002, 23, 230, 2300]);
    await expect(
      ranks[0]!.neighborAllReduce(datas[0]!, { selfWeight: 1, srcWeights: { 1: 1 } }),
    ).rejects.toThrow(errorWith('ERR_INVALID_ARG_VALUE', /rank 0.*\(2, 3\).*srcWeights/));
  });

  it('refuses what does not belong together', async () => {
    await make(2);
    const [one] = ranks;
    const data = new Float32Array(2);
    expect(() => one!.setTopology(ringGraph(3))).toThrow(/a Topology of 2 ranks/);
    expect(one!.topology.isEquivalent(exponentialTwoGraph(2))).toBe(true);
    await expect(one!.neighborAllReduce(data, { selfWeight: 1 })).rejects.toThrow(/srcWeights/);
    await expect(one!.neighborAllReduce(data, { dstWeights: [1] })).rejects.toThrow(/selfWeight/);
    await expect(
      one!.neighborAllReduce(data, { selfWeight: 1, srcWeights: {}, dstWeights: [1, 1] }),
    ).rejects.toThrow(/1 twice/);
  });
});

describe('neighborAllGather', () => {
  it('follows the topology unless lists are given', async () => {
    await make(3);
    ranks.forEach((one) => one.setTopology(ringGraph(3, 'right')));
    const calls = ranks.map((one, rank) => one.neighborAllGather(Int32Array.of(rank)));
    expect(await Promise.all(calls)).toEqual([2, 0, 1].map((from) => Int32Array.of(from)));
  });

  it('takes lists, other lengths and an order', async () => {
    await make(3);
    const datas = [Int32Array.of(1), Int32Array.of(2, 2), new Int32Array(9000).fill(3)];
    const out = new Int32Array(9002);
    const got = await Promise.all([
      ranks[0]!.neighborAllGather(datas[0]!, {
        srcRanks: [2, 1],
        srcCounts: [9000, 2],
        dstRanks: [1],
        out,
      }),
      ranks[1]!.neighborAllGather(datas[1]!, { srcRanks: [0], srcCounts: [1], dstRanks: [0] }),
      ranks[2]!.neighborAllGather(datas[2]!, { srcRanks: [], dstRanks: [0] }),
    ]);
    expect(got[0]).toBe(out);
    expect([out[0], out[8999], out[9000], out[9001]]).toEqual([3, 3, 2, 2]);
    expect(got[1]).toEqual(Int32Array.of(1));
    expect(got[2]).toEqual(new Int32Array(0));
  });

  it('has a blocking twin', async () => {
    await make(2);
    const theirs = ranks[1]!.neighborAllGather(Float64Array.of(5));
    expect(ranks[0]!.neighborAllGatherSync(Float64Array.of(4))).toEqual(Float64Array.of(5));
    expect(await theirs).toEqual(Float64Array.of(4));
  });
});

describe('pairGossip', () => {
  it('averages unless weights are given, takes out, and has a blocking twin', async () => {
    await make(2);
    const [a, b] = [Float64Array.of(1), Float64Array.of(10)];
    const out = new Float64Array(1);
    const theirs = ranks[1]!.pairGossip(b, { peer: 0, selfWeight: 3, pairWeight: 4 });
    ranks[0]!.pairGossipSync(a, { peer: 1, selfWeight: 1, pairWeight: 2, out });
    await theirs;
    expect([a[0], out[0], b[0]]).toEqual([1, 21, 34]);
    const halves = [ranks[0]!.pairGossip(a, { peer: 1 }), ranks[1]!.pairGossip(b, { peer: 0 })];
    expect(await Promise.all(halves)).toEqual([Float64Array.of(17.5), Float64Array.of(17.5)]);
  });

  it('refuses its own rank, and half of the weights', async () => {
    await make(2);
    const data = new Float32Array(1);
    await expect(ranks[0]!.pairGossip(data, { peer: 0 })).rejects.toThrow(
      errorWith('ERR_OUT_OF_RANGE', /peer.* 0$/),
    );
    await expect(ranks[0]!.pairGossip(data, { peer: 1, selfWeight: 1 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /selfWeight.*pairWeight/),
    );
  });
});
