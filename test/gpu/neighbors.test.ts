// Exchanges with neighbours, and windows, where ranks are processes with a GPU each.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { well } from '../support/processes.js';

const size = 4;
const ranks = Array.from({ length: size }, (_, rank) => rank);
/** In the exponential graph, which nothing else says. */
const sourcesOf = (rank: number) =>
  [1, 2].map((distance) => (rank + size - distance) % size).sort((a, b) => a - b);

let scripts: GpuScripts;
beforeEach((context) => {
  scripts = new GpuScripts();
  if (gpuDevices().length < size) context.skip(`needs ${size} GPUs`);
});
afterEach(() => scripts.remove());

/** Of each rank, what it reported; `values(dtype, list)` are arrays of the host. */
async function reportsOf(source: string): Promise<(readonly unknown[])[]> {
  const started = scripts.startRanks(
    size,
    `const comm = await Communicator.world({ backend: 'nccl' });
    const gpu = comm.gpus[0];
    const filled = async (dtype, value, count = 1000) => {
      const buffer = DeviceBuffer.alloc(gpu, dtype, count);
      await buffer.fill(value);
      return buffer;
    };
    // 'value' or the elements that differ from the first.
    const only = async (buffer) => {
      const host = [...(await buffer.copyTo())].map(asNumber[buffer.dtype] ?? Number);
      return host.every((one) => one === host[0]) ? host[0] : host;
    };
    // Exact for the small whole numbers and quarters of these tests.
    const asNumber = {
      float16: (bits) => bits === 0 ? 0 : (bits >> 15 ? -1 : 1) * 2 ** (((bits >> 10) & 31) - 15) * (1 + (bits & 1023) / 1024),
    };
    ${source}
    // Who has heard from its own neighbours may be done first, and rank 0's process is the stand-in's meeting place.
    await comm.barrier();
    await comm.close();`,
    scripts.env(),
  );
  const ended = await Promise.all(started.map((one) => one.ended));
  expect(ended).toMatchObject(ended.map(() => well));
  scripts.expectNothingLeft();
  return ended.map(({ reports }) => reports);
}

describe('ranks that are GPUs', () => {
  it.each(['float32', 'float64', 'float16'])('average %s with neighbours', async (dtype) => {
    const reports = await reportsOf(`
      const data = await filled('${dtype}', 8 * comm.rank);
      await comm.neighborAllReduce(data, { selfWeight: 0.5, srcWeights: { [(comm.rank + 3) % 4]: 0.25 },
        dstWeights: { [(comm.rank + 1) % 4]: 1 } });
      report(await only(data));
      await data.fill(8 * comm.rank);
      comm.setTopology(ringGraph(4));
      await comm.neighborAllReduce(data, { selfWeight: 1, srcWeights: [(comm.rank + 1) % 4, (comm.rank + 3) % 4] });
      report(await only(data));
      await data.fill(4 * comm.rank);
      await comm.pairGossip(data, { peer: comm.rank ^ 1, selfWeight: 0.5, pairWeight: 0.25 });
      report(await only(data));`);
    expect(reports).toEqual(
      ranks.map((rank) => {
        const [next, before] = [(rank + 1) % size, (rank + 3) % size];
        return [4 * rank + 2 * before, 8 * (rank + next + before), 2 * rank + (rank ^ 1)];
      }),
    );
  });

  it.each(['float32', 'float64', 'float16', 'int32'])(
    'gather %s from neighbours, of each its length',
    async (dtype) => {
      const reports = await reportsOf(`
        const length = (rank) => 3 * rank;
        const sources = [(comm.rank + 2) % 4, (comm.rank + 3) % 4].sort();
        const data = await filled('${dtype}', comm.rank + 1, length(comm.rank));
        const got = await comm.neighborAllGather(data, { srcRanks: sources, srcCounts: sources.map(length),
          dstRanks: [(comm.rank + 1) % 4, (comm.rank + 2) % 4] });
        report([got.device === gpu, got.dtype, got.length]);
        let at = 0;
        for (const source of sources) {
          report(length(source) === 0 ? null : await only(got.slice(at, at + length(source))));
          at += length(source);
        }`);
      expect(reports).toEqual(
        ranks.map((rank) => [
          [true, dtype, sourcesOf(rank).reduce((sum, source) => sum + 3 * source, 0)],
          ...sourcesOf(rank).map((source) => (source === 0 ? null : source + 1)),
        ]),
      );
    },
  );

  it('average over nodes', async () => {
    const reports = await reportsOf(`
      await comm.setMachineTopology(undefined, { ranksPerNode: 2 });
      const data = await filled('float32', 4 * comm.rank);
      await comm.hierarchicalNeighborAllReduce(data);
      report(await only(data));`);
    expect(reports).toEqual(ranks.map(() => [6]));
  });

  it('hear alike what does not fit together, and go on', async () => {
    const reports = await reportsOf(`
      const data = await filled('float32', comm.rank + 1, 10);
      const lists = { srcRanks: [(comm.rank + 3) % 4], dstRanks: [(comm.rank + 1) % 4] };
      report(await outcome(comm.neighborAllGather(data, comm.rank === 2 ? { ...lists, srcRanks: [] } : lists)));
      report(await outcome(comm.neighborAllReduce(data, comm.rank === 2
        ? { selfWeight: 1, srcWeights: {}, dstWeights: {} }
        : { selfWeight: 1, srcWeights: { [(comm.rank + 3) % 4]: 1 }, dstWeights: { [(comm.rank + 1) % 4]: 1 } })));
      report(await only(await comm.neighborAllGather(data, lists)));`);
    for (const [rank, [gather, reduce, after]] of reports.entries()) {
      expect(gather).toMatchObject({ code: 'ERR_MISMATCH', op: 'neighborAllGather' });
      expect(gather).toEqual(reports[0]![0]);
      expect(reduce).toMatchObject({ code: 'ERR_MISMATCH', op: 'neighborAllReduce' });
      expect(reduce).toEqual(reports[0]![1]);
      expect(after).toBe(((rank + 3) % size) + 1);
    }
  });

  it.each(['float32', 'float64', 'float16', 'int32'])('reach into windows of %s', async (dtype) => {
    const reports = await reportsOf(`
      const data = await filled('${dtype}', 4 * (comm.rank + 1));
      const window = await comm.createWindow(data, { zeroInit: true });
      report([window.array.device === gpu, window.array.dtype, window.array.length]);
      await window.put();
      await window.accumulate(data);
      await comm.barrier();
      report(window.versions());
      await window.updateThenCollect();
      report(await only(window.array));
      // The array is live: what the program writes there is what the others get.
      await window.array.fill(4 * (comm.rank + 1));
      await comm.barrier();
      await window.get();
      const out = await filled('${dtype}', 0);
      await comm.barrier();
      await window.update({ selfWeight: 1, srcWeights: window.sources, out });
      report(await only(out));
      report(await only(await window.update({ reset: true })));
      await window.free();
      report(await only(window.array));
      window.array.dispose();`);
    expect(reports).toEqual(
      ranks.map((rank) => {
        const sources = sourcesOf(rank);
        const own = 4 * (rank + 1);
        const others = sources.reduce((sum, source) => sum + 4 * (source + 1), 0);
        const mean = (own + others) / 3;
        const average = dtype === 'int32' ? Math.trunc(mean) : expect.closeTo(mean, 1);
        return [
          [true, dtype, 1000],
          Object.fromEntries(sources.map((source) => [source, 1])),
          own + 2 * others,
          own + others,
          average,
          average,
        ];
      }),
    );
  });

  it('lose nothing of what goes round in push-sum', async () => {
    const reports = await reportsOf(`
      const data = await filled('float64', comm.rank);
      const window = await comm.createWindow(data, { zeroInit: true, associatedP: true });
      const dstWeights = Object.fromEntries(window.destinations.map((rank) => [rank, 0.25]));
      for (let step = 0; step < 60; ++step) {
        await window.accumulate(undefined, { selfWeight: 0.5, dstWeights });
        await window.updateThenCollect();
      }
      await comm.barrier();
      await window.updateThenCollect();
      report(await window.withMutex(() => 'held'));
      const p = DeviceBuffer.alloc(gpu, 'float64', 1);
      await p.fill(window.associatedP);
      await comm.allReduce(p);
      await comm.allReduce(window.array);
      report([await only(window.array), await only(p)]);
      await window.free();`);
    const near = (value: number): unknown => expect.closeTo(value, 9);
    expect(reports).toEqual(ranks.map(() => ['held', [near(6), near(size)]]));
  });

  it('are told of a neighbour that was killed, and end by themselves with a window open', async () => {
    const started = scripts.startRanks(
      2,
      `const comm = await Communicator.world({ backend: 'nccl' });
      const data = DeviceBuffer.alloc(comm.gpus[0], 'float32', 1000);
      await data.fill(1);
      const window = await comm.createWindow(data);
      await window.put();
      await comm.barrier();
      say('ready');
      if (comm.rank === 1) setInterval(() => undefined, 1000);
      else {
        // Until the loss is known here, too, a put may still find the neighbour's thread.
        let last;
        do last = await outcome(window.put()); while (last === 'done');
        report(last);
        report(await outcome(window.get()));
        report(await outcome(window.update()));
      }`,
      scripts.env(),
    );
    // Both: the other may not have left the barrier yet.
    await Promise.all(started.map((one) => one.said('ready')));
    started[1]!.child.kill('SIGKILL');
    expect(await started[1]!.ended).toMatchObject({ signal: 'SIGKILL' });
    const survivor = await started[0]!.ended;
    expect(survivor).toMatchObject(well);
    const lost = { code: 'ERR_PEER_LOST', rank: 1 };
    expect(survivor.reports).toMatchObject([lost, lost, 'done']);
  });

  it('one alone exchanges with nobody', async () => {
    const ended = await scripts.run(
      `const comm = await Communicator.world({ backend: 'nccl' });
      const data = DeviceBuffer.alloc(comm.gpus[0], 'float32', 4);
      await data.fill(3);
      await comm.neighborAllReduce(data);
      report([...(await data.copyTo())]);
      report((await comm.neighborAllGather(data)).length);
      const window = await comm.createWindow(data);
      await window.put();
      await window.get();
      report([...(await (await window.update()).copyTo())]);
      await window.free();
      await comm.close();`,
      scripts.env(),
    );
    expect(ended).toMatchObject({ ...well, reports: [[3, 3, 3, 3], 0, [3, 3, 3, 3]] });
    scripts.expectNothingLeft();
  });
});
