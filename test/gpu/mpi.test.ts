// Worlds of MPI whose ranks' arrays are on GPUs, under real mpiruns.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { well } from '../support/processes.js';

const present = gpuDevices().length;

let scripts: GpuScripts;
beforeEach(() => {
  scripts = new GpuScripts();
});
afterEach(() => scripts.remove());

/** Each rank on a GPU, with what makes buffers and reads them. */
const aWorld = `
  const own = Number(process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK) % ${present};
  const comm = await Communicator.world({ backend: 'mpi', gpu: own });
  const { rank, size } = comm;
  const filled = async (dtype, values) => {
    const buffer = DeviceBuffer.alloc(own, dtype, values.length);
    if (values.length > 0) await buffer.copyFrom(values);
    return buffer;
  };
  const zeros = (count) => filled('float64', new Float64Array(count));
`;

/** Every call, on numbers whose sums are exact. */
const everything = `${aWorld}
  const wrong = [];
  const expect = async (what, buffer, valueAt) => {
    const array = await buffer.copyTo();
    const at = array.findIndex((value, i) => Number(value) !== valueAt(i));
    if (at >= 0) wrong.push(what + '[' + at + '] is ' + array[at] + ', not ' + valueAt(at));
  };
  const mine = (i, of = rank) => (i % 5) + of;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const sumOf = (i) => ranks.reduce((sum, r) => sum + mine(i, r), 0);
  for (const count of [1, 1000, 100_001]) {
    const values = Float64Array.from({ length: count }, (_, i) => mine(i));
    const data = () => filled('float64', values);
    const root = count % size;
    await expect('allReduce', await comm.allReduce(await data()), sumOf);
    await expect('avg', await comm.allReduce(await data(), { op: 'avg' }), (i) => sumOf(i) / size);
    await expect('out', await comm.allReduce(await data(), { out: await zeros(count) }), sumOf);
    const reduced = await comm.reduce(await data(), { root });
    if (rank === root) await expect('reduce', reduced, sumOf);
    await expect('broadcast', await comm.broadcast(await data(), { root }), (i) => mine(i, root));
    const all = await comm.allGather(await data(), { out: await zeros(size * count) });
    await expect('allGather', all, (i) => mine(i % count, Math.floor(i / count)));
    const blocks = () => filled('float64', Float64Array.from({ length: size * count }, (_, i) => mine(i)));
    await expect('reduceScatter', await comm.reduceScatter(await blocks(), { out: await zeros(count) }), (i) => sumOf(rank * count + i));
    const exchanged = await comm.allToAll(await blocks(), { out: await zeros(size * count) });
    await expect('allToAll', exchanged, (i) => mine(rank * count + (i % count), Math.floor(i / count)));
    const gathered = await comm.gather(await data(), rank === root ? { root, out: await zeros(size * count) } : { root });
    if (rank === root) await expect('gather', gathered, (i) => mine(i % count, Math.floor(i / count)));
    const scattered = await zeros(count);
    await comm.scatter(rank === root ? await blocks() : null, { root, out: scattered });
    await expect('scatter', scattered, (i) => mine(rank * count + i, root));
    const [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
    const mixed = await data();
    await comm.neighborAllReduce(mixed, { selfWeight: 0.5, srcWeights: { [before]: 0.5 }, dstWeights: { [next]: 1 } });
    await expect('neighborAllReduce', mixed, (i) => (mine(i) + mine(i, before)) / 2);
    const lists = { srcRanks: [before], dstRanks: [next] };
    await expect('neighborAllGather', await comm.neighborAllGather(await data(), lists), (i) => mine(i, before));
    if (rank < 2) {
      const pair = await comm.pairGossip(await data(), { peer: 1 - rank, selfWeight: 1, pairWeight: 2 });
      await expect('pairGossip', pair, (i) => mine(i) + 2 * mine(i, 1 - rank));
    }
    comm.setTopology(ringGraph(size, 'right'));
    const window = await comm.createWindow(await data(), { zeroInit: true });
    await window.put();
    await window.accumulate();
    await comm.barrier();
    await expect('window', await window.updateThenCollect(), (i) => mine(i) + 2 * mine(i, window.sources[0]));
    await window.free();
    const message = await data();
    // Longer than the message.
    const got = await zeros(count + 1);
    // A send may wait for its receive.
    if (rank === 0) await comm.send(message, { to: next, tag: 3 });
    const received = await comm.receive(got, { tag: 3 });
    if (rank !== 0) await comm.send(message, { to: next, tag: 3 });
    if (received.source !== before || received.count !== count) wrong.push('received ' + JSON.stringify(received));
    await expect('receive', got, (i) => (i === count ? 0 : mine(i, before)));
  }
  const part = await comm.split(rank % 2, -rank);
  await expect('split', await part.allReduce(await filled('int32', Int32Array.of(rank))), () =>
    ranks.filter((r) => r % 2 === rank % 2).reduce((sum, r) => sum + r, 0));
  report([rank, size, comm.backend, comm.gpus[0] === own, part.gpus[0] === own, wrong]);
  await part.close();
  await comm.close();
`;

describe.each(flavours)('under mpirun of %s', (flavour) => {
  it.for([2, 3])('%d ranks on GPUs compute what ranks of the host do', async (size, context) => {
    const mpirun = mpirunOf(flavour, context);
    const ended = await startJob(scripts, mpirun, size, everything, scripts.env()).ended;
    expect(ended).toMatchObject(well);
    const reports = [...(ended.reports as [number][])].sort(([a], [b]) => a - b);
    expect(reports).toEqual(
      Array.from({ length: size }, (_, rank) => [rank, size, 'mpi', true, true, []]),
    );
    scripts.expectNothingLeft();
  });

  it('float8 is moved, and sums, scales and shared memory of it are refused', async (context) => {
    const mpirun = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      mpirun,
      2,
      `${aWorld}
      const small = DeviceBuffer.alloc(own, 'float8e4m3', 16);
      report(await outcome(comm.broadcast(small)));
      report((await outcome(comm.allReduce(small))).code);
      const floats = DeviceBuffer.alloc(own, 'float32', 4);
      report((await outcome(comm.allReduce(floats, { scale: 2 }))).code);
      let code;
      try { comm.allocShared('float32', 4); } catch (error) { code = error.code; }
      report(code);
      report((await outcome(comm.allReduce(new Float32Array(4)))).code);
      await comm.close();`,
      scripts.env(),
    ).ended;
    expect(ended).toMatchObject(well);
    const refused = [
      'ERR_UNSUPPORTED',
      'ERR_UNSUPPORTED',
      'ERR_UNSUPPORTED',
      'ERR_INVALID_ARG_TYPE',
    ];
    expect([...ended.reports].sort()).toEqual(
      ['done', ...refused].flatMap((one) => [one, one]).sort(),
    );
    scripts.expectNothingLeft();
  });

  it('ranks whose arrays are on GPUs meet ranks whose arrays are not', async (context) => {
    const mpirun = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      mpirun,
      2,
      `const first = Number(process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK) === 0;
      const comm = await Communicator.world({ backend: 'mpi', ...(first ? { gpu: 0 } : {}) });
      const values = Float32Array.of(1, 2, 3);
      const data = first ? DeviceBuffer.alloc(0, 'float32', 3) : values;
      if (first) await data.copyFrom(values);
      const sum = await comm.allReduce(data);
      report([...(first ? await sum.copyTo() : sum)]);
      await comm.close();`,
      scripts.env(),
    ).ended;
    expect(ended).toMatchObject({
      ...well,
      reports: [
        [2, 4, 6],
        [2, 4, 6],
      ],
    });
    scripts.expectNothingLeft();
  });
});
