// Worlds of GPUs on several hosts: what crosses them is NCCL's, what the ranks agree on goes over TCP or MPI.
import { afterEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { well, type Ended } from '../support/processes.js';
import { startOverTcp } from '../support/tcp.js';
import { ends } from '../support/world-groups.js';

const gpus = gpuDevices().length;
const size = Math.min(gpus, 3);

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** Every kind of call, on numbers whose sums are exact. */
const everything = (options: string): string => `
  const comm = await Communicator.world({ backend: 'nccl', ${options} });
  const { rank, size } = comm;
  const [own] = comm.gpus;
  const wrong = [];
  const filled = async (values) => {
    const buffer = DeviceBuffer.alloc(own, 'float64', values.length);
    await buffer.copyFrom(Float64Array.from(values));
    return buffer;
  };
  const expect = async (what, buffer, valueAt) => {
    const array = await buffer.copyTo();
    const at = array.findIndex((value, i) => value !== valueAt(i));
    if (at >= 0) wrong.push(what + '[' + at + '] is ' + array[at] + ', not ' + valueAt(at));
  };
  const mine = (i, of = rank) => (i % 5) + of;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const sumOf = (i) => ranks.reduce((sum, r) => sum + mine(i, r), 0);
  const count = 1000;
  const data = () => filled(Array.from({ length: count }, (_, i) => mine(i)));
  await expect('allReduce', await comm.allReduce(await data()), sumOf);
  await expect('broadcast', await comm.broadcast(await data(), { root: size - 1 }), (i) => mine(i, size - 1));
  const all = DeviceBuffer.alloc(own, 'float64', size * count);
  await expect('allGather', await comm.allGather(await data(), { out: all }), (i) => mine(i % count, Math.floor(i / count)));
  const [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
  if (size > 1) {
    const got = await filled(Array(count).fill(0));
    const message = await data();
    // NCCL's send waits for its receive.
    if (rank === 0) await comm.send(message, { to: next });
    await comm.receive(got, { from: before });
    if (rank !== 0) await comm.send(message, { to: next });
    await expect('receive', got, (i) => mine(i, before));
    const mixed = await data();
    await comm.neighborAllReduce(mixed, { selfWeight: 0.5, srcWeights: { [before]: 0.5 }, dstWeights: { [next]: 1 } });
    await expect('neighborAllReduce', mixed, (i) => (mine(i) + mine(i, before)) / 2);
    const lists = { srcRanks: [before], dstRanks: [next] };
    await expect('neighborAllGather', await comm.neighborAllGather(await data(), lists), (i) => mine(i, before));
    if (rank < 2) {
      await expect('pairGossip', await comm.pairGossip(await data(), { peer: 1 - rank }), (i) => (mine(i, 0) + mine(i, 1)) / 2);
    }
    await comm.setMachineTopology(ringGraph(size, 'right'), { ranksPerNode: 1 });
    await expect('hierarchical', await comm.hierarchicalNeighborAllReduce(await data()), (i) => (mine(i) + mine(i, before)) / 2);
  }
  comm.setTopology(ringGraph(size, 'right'));
  const window = await comm.createWindow(await data(), { zeroInit: true });
  await window.put();
  await comm.barrier();
  if (size > 1) await expect('window', await window.updateThenCollect(), (i) => mine(i) + mine(i, before));
  await window.free();
  const part = await comm.split(rank % 2, rank);
  await expect('split', await part.allReduce(await filled([rank])), () =>
    ranks.filter((r) => r % 2 === rank % 2).reduce((sum, r) => sum + r, 0));
  await part.close();
  const other = comm.allReduce(await filled(Array(rank + 3).fill(1)), { name: 'own ' + rank });
  const { code, message = '' } = await outcome(other);
  const told = code === 'ERR_MISMATCH' && ranks.every((r) => message.includes("'own " + r + "'"));
  report([rank, size, comm.backend, wrong, size === 1 || told]);
  await comm.close();
`;

const expected = (ranks: number): unknown[] =>
  Array.from({ length: ranks }, (_, rank) => [rank, ranks, 'nccl', [], true]);

function sorted(ended: readonly Ended[]): unknown[] {
  const reports = ended.flatMap((one) => one.reports) as [number][];
  return reports.sort(([a], [b]) => a - b);
}

describe('a world of GPUs', () => {
  it.for([undefined, 1, 2])('over TCP computes, %s ranks a host', async (perNode) => {
    const env = perNode === undefined ? {} : { GRADLINK_RANKS_PER_NODE: String(perNode) };
    // More than one host, for all that the ranks are told.
    const running = await startOverTcp(
      scripts,
      size,
      everything('gpu: Number(process.env.RANK)'),
      scripts.env({ LOCAL_WORLD_SIZE: String(Math.max(1, size - 1)), ...env }),
    );
    const ended = await ends(running);
    for (const one of ended) expect(one).toMatchObject(well);
    expect(sorted(ended)).toEqual(expected(size));
    scripts.expectNothingLeft();
  });

  it.for(flavours)('over MPI computes, under mpirun of %s', async (flavour, context) => {
    const mpirun = mpirunOf(flavour, context);
    const env = scripts.env({ GRADLINK_TRANSPORT: 'mpi', GRADLINK_RANKS_PER_NODE: '1' });
    const ended = await startJob(scripts, mpirun, size, everything(''), env).ended;
    expect(ended).toMatchObject(well);
    expect(sorted([ended])).toEqual(expected(size));
    scripts.expectNothingLeft();
  });

  it('agrees as often as it is told', async () => {
    const source = `
      const comm = await Communicator.world({ backend: 'nccl', check: process.env.CHECK });
      const data = DeviceBuffer.alloc(comm.gpus[0], 'float32', 1000);
      await data.fill(1);
      for (let i = 0; i < 3; ++i) await comm.allReduce(data);
      report((await data.copyTo())[999]);
      data.dispose();
      await comm.close();
    `;
    for (const check of ['always', 'first', 'never']) {
      const ranks = scripts.startRanks(size, source, scripts.env({ CHECK: check }));
      for (const one of await ends(ranks)) {
        expect(one).toMatchObject({ ...well, reports: [size ** 3] });
      }
    }
    const wrong = await scripts.run(
      `report(await outcome(Communicator.world({ backend: 'nccl', check: 'maybe' })));
       report(await outcome(Communicator.world({ check: 'first' })));`,
      scripts.env(),
    );
    expect(wrong.reports).toEqual([
      expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
      expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
    ]);
    scripts.expectNothingLeft();
  });
});
