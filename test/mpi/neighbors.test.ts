// Averaging with neighbours under a real mpirun: by topology and by schedule, and over nodes.
import { afterEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

/** Small integers of every type, which all of them hold exactly. */
const prelude = `
  const comm = await Communicator.world({ backend: 'mpi' });
  const { rank, size } = comm;
  const wrong = [];
  const half = (value) => {
    if (value === 0) return 0;
    const exponent = Math.floor(Math.log2(value));
    return ((exponent + 15) << 10) | ((value / 2 ** exponent - 1) * 1024);
  };
  const types = {
    float32: [Float32Array, (x) => x],
    float64: [Float64Array, (x) => x],
    float16: [Uint16Array, half],
    int16: [Int16Array, (x) => x],
    int32: [Int32Array, (x) => x],
  };
  const expect = (what, array, want) => {
    const at = array.findIndex((value) => value !== want);
    if (at >= 0) wrong.push(what + '[' + at + '] is ' + array[at] + ', not ' + want);
  };
  const average = (ranks) => ranks.reduce((sum, r) => sum + 12 * (r + 1), 0) / ranks.length;
  const finish = async () => {
    await comm.barrier();
    report({ rank, wrong });
    await comm.close();
  };
`;

const averaging = `${prelude}
  const graphs = { exponential: exponentialTwoGraph(size), ring: ringGraph(size, 'left') };
  for (const [dtype, [Type, of]] of Object.entries(types)) {
    const row = (length, value) => new Type(length).fill(of(value));
    // Below, and above, what travels with the announcement, and in several pieces.
    for (const length of [1, 3000, 200_001]) {
      for (const [name, graph] of Object.entries(graphs)) {
        comm.setTopology(graph);
        const what = [name, dtype, length].join(' ');
        const sources = graph.sources(rank);
        {
          const data = row(length, 12 * (rank + 1));
          const want = average([rank, ...sources]);
          const out = row(length, 0);
          await comm.neighborAllReduce(data, { dtype, out });
          if (Number.isInteger(want)) expect('out of ' + what, out, of(want));
          expect('input of ' + what, data, of(12 * (rank + 1)));
          comm.neighborAllReduceSync(data, { dtype });
          if (Number.isInteger(want)) expect(what, data, of(want));
        }
        const got = await comm.neighborAllGather(row(length, rank + 1), { dtype });
        sources.forEach((source, i) =>
          expect('gather ' + what, got.subarray(i * length, (i + 1) * length), of(source + 1)));
      }
    }
    if (dtype === 'int32') continue;
    // Each rank names whom it sends to and hears from in this step alone.
    const schedule = onePeerSchedule(exponentialTwoGraph(size), rank);
    const moving = row(5000, 8);
    for (let step = 0; step < 4; step += 1) {
      const exchange = uniformWeights(schedule.next().value);
      await comm.neighborAllReduce(moving, { ...exchange, dtype, checkTopology: step % 2 === 0 });
    }
    expect('one peer ' + dtype, moving, of(8));
    const next = (rank + 1) % size;
    const before = (rank + size - 1) % size;
    const weighted = row(5000, 8 * (rank + 1));
    const edges =
      size === 1
        ? { selfWeight: 2, srcWeights: {}, dstWeights: [] }
        : { selfWeight: 2, srcWeights: { [before]: 0.5 }, dstWeights: { [next]: 4 } };
    await comm.neighborAllReduce(weighted, { ...edges, dtype });
    const heard = size === 1 ? 0 : 2 * 8 * (before + 1);
    expect('weighted ' + dtype, weighted, of(2 * 8 * (rank + 1) + heard));
    if (size > 1 && rank < 2) {
      const pair = await comm.pairGossip(row(9000, rank === 0 ? 4 : 8), { peer: 1 - rank, dtype });
      expect('gossip ' + dtype, pair, of(6));
    }
  }
  const small = 2 ** -256;
  const tiny = Float64Array.of(small);
  await comm.neighborAllReduce(tiny);
  expect('small', tiny, small);
  const perNode = Number(process.env.GRADLINK_RANKS_PER_NODE ?? size);
  if (size % perNode === 0) {
    await comm.setMachineTopology();
    const nodes = exponentialTwoGraph(size / perNode);
    const own = Math.floor(rank / perNode);
    const members = [own, ...nodes.sources(own)].flatMap((node) =>
      Array.from({ length: perNode }, (_, local) => node * perNode + local));
    for (const length of [1, 100_001]) {
      const data = new Float64Array(length).fill(12 * (rank + 1));
      await comm.hierarchicalNeighborAllReduce(data);
      expect('hierarchical', data, average(members));
    }
  }
  await finish();
`;

const cases = [
  { size: 1, perNode: undefined },
  { size: 2, perNode: 1 },
  { size: 3, perNode: 2 },
  { size: 4, perNode: 2 },
  { size: 7, perNode: 1 },
];

describe.each(flavours)('neighbours under mpirun of %s', (flavour) => {
  const run = async (
    program: string,
    size: number,
    perNode: number | undefined,
    source: string,
  ): Promise<readonly unknown[]> => {
    const env = perNode === undefined ? {} : { GRADLINK_RANKS_PER_NODE: String(perNode) };
    const ended = await startJob(scripts, program, size, source, env).ended;
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    return ended.reports;
  };
  const right = (size: number): unknown[] =>
    Array.from({ length: size }, (_, rank) => ({ rank, wrong: [] }));
  const sorted = (reports: readonly unknown[]): unknown[] =>
    [...(reports as { rank: number }[])].sort((a, b) => a.rank - b.rank);

  it.for(cases)('average: $size ranks, $perNode a host', async ({ size, perNode }, context) => {
    const reports = await run(mpirunOf(flavour, context), size, perNode, averaging);
    expect(sorted(reports)).toEqual(right(size));
  });

  it.for([1, 2])('disagree in the same words, %i a host', async (perNode, context) => {
    const reports = await run(
      mpirunOf(flavour, context),
      3,
      perNode,
      `
      const comm = await Communicator.world({ backend: 'mpi' });
      comm.setTopology(ringGraph(3, comm.rank === 1 ? 'left' : 'right'));
      const data = new Float32Array(5).fill(comm.rank);
      report([
        await outcome(comm.neighborAllReduce(data)),
        await outcome(comm.neighborAllGather(data)),
        await outcome(comm.createWindow(data)),
      ]);
      comm.setTopology(ringGraph(3));
      await comm.neighborAllReduce(data);
      if (data[0] !== 1) throw new Error('it does not go on');
      await comm.close();
    `,
    );
    const all = reports as readonly { code: string; message: string }[][];
    expect(new Set(all.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(all).toHaveLength(3);
    expect(all[0]!.map(({ code }) => code)).toEqual(new Array(3).fill('ERR_MISMATCH'));
  });
});
