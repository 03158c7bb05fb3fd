// The ranks of Communicator.nccl: one process, a communicator of its own for each GPU.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { gpuDevices } from '../../lib/gpu/devices.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import type { CommonDType } from '../../lib/tensor/dtype.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, valuesOf } from '../support/numbers.js';

const size = 4;
const all = Array.from({ length: size }, (_, rank) => rank);

describe.skipIf(gpuDevices().length < size)('each rank of one process', () => {
  let group: LocalGroup<'gpu'>;
  let ranks: readonly Communicator<'gpu'>[];
  beforeAll(async () => {
    group = await Communicator.nccl({ gpus: all });
    ranks = await group.openRanks();
  });
  afterAll(() => group.close());

  const filled = async (rank: number, dtype: CommonDType, value: number, count = 1000) => {
    const buffer = DeviceBuffer.alloc(rank, dtype, count);
    await buffer.copyFrom(arrayOf(dtype, new Array<number>(count).fill(value)));
    return buffer;
  };
  /** What every element is, or all elements where they differ. */
  const only = async (buffer: DeviceBuffer) => {
    const values = valuesOf(buffer.dtype as CommonDType, await buffer.copyTo());
    return values.every((one) => one === values[0]) ? values[0] : values;
  };
  /** Of every rank at once, what `part` gives. */
  const onEach = <T>(part: (comm: Communicator<'gpu'>, rank: number) => Promise<T>) =>
    Promise.all(ranks.map((comm, rank) => part(comm, rank)));

  it('is a communicator of its own, always the same', async () => {
    expect(await group.openRanks()).toBe(ranks);
    expect(
      ranks.map(({ rank, gpus, memory, backend }) => ({ rank, gpus, memory, backend })),
    ).toEqual(all.map((rank) => ({ rank, gpus: [rank], memory: 'gpu', backend: 'nccl' })));
  });

  it('combines with the others, as the group does', async () => {
    const sums = await onEach(async (comm, rank) => {
      using data = await filled(rank, 'float32', rank + 1);
      await comm.allReduce(data);
      return await only(data);
    });
    expect(sums).toEqual([10, 10, 10, 10]);
    const datas = await Promise.all(all.map((rank) => filled(rank, 'float32', rank + 1)));
    await group.allReduce(datas);
    expect(await Promise.all(datas.map(only))).toEqual(sums);
    datas.forEach((one) => one.dispose());
  });

  it.each(['float32', 'float64', 'float16'] as const)(
    'averages %s with neighbours',
    async (dtype) => {
      const got = await onEach(async (comm, rank) => {
        const [next, before] = [(rank + 1) % size, (rank + 3) % size];
        using data = await filled(rank, dtype, 8 * rank);
        await comm.neighborAllReduce(data, {
          selfWeight: 0.5,
          srcWeights: { [before]: 0.25 },
          dstWeights: { [next]: 1 },
        });
        const dynamic = await only(data);
        using pair = await filled(rank, dtype, 4 * rank);
        await comm.pairGossip(pair, { peer: rank ^ 1, selfWeight: 0.5, pairWeight: 0.25 });
        using nodes = await filled(rank, dtype, 4 * rank);
        await comm.setMachineTopology(undefined, { ranksPerNode: 2 });
        await comm.hierarchicalNeighborAllReduce(nodes);
        return [dynamic, await only(pair), await only(nodes)];
      });
      expect(got).toEqual(
        all.map((rank) => [4 * rank + 2 * ((rank + 3) % size), 2 * rank + (rank ^ 1), 6]),
      );
    },
  );

  it('reaches into windows of its neighbours', async () => {
    const got = await onEach(async (comm, rank) => {
      using data = await filled(rank, 'float32', 4 * (rank + 1));
      const window = await comm.createWindow(data, { zeroInit: true });
      await window.put();
      await window.accumulate(data);
      await comm.barrier();
      const versions = window.versions();
      await window.updateThenCollect();
      const collected = await only(window.array);
      // The array is live: what the program writes there is what the others get.
      await window.array.fill(4 * (rank + 1));
      await comm.barrier();
      await window.get();
      await comm.barrier();
      using out = await filled(rank, 'float32', 0);
      await window.update({ selfWeight: 1, srcWeights: window.sources, out });
      const got = await only(out);
      await window.free();
      const kept = await only(window.array);
      window.array.dispose();
      return [Object.values(versions), collected, got, kept];
    });
    const valueOf = (rank: number) => 4 * ((rank % size) + 1);
    const others = (rank: number) => valueOf(rank + 3) + valueOf(rank + 2);
    expect(got).toEqual(
      all.map((rank) => {
        const own = valueOf(rank);
        return [[1, 1], own + 2 * others(rank), own + others(rank), own];
      }),
    );
  });
});

describe.skipIf(gpuDevices().length < 2)('ranks', () => {
  it('are closed and aborted with their group', async () => {
    const closed = await Communicator.nccl({ gpus: [0, 1] });
    const [first] = await closed.openRanks();
    await closed.close();
    await expect(first!.barrier()).rejects.toMatchObject({ code: 'ERR_CLOSED' });

    const aborted = await Communicator.nccl({ gpus: [0, 1] });
    const [one] = await aborted.openRanks();
    const pending = one!.barrier();
    aborted.abort('enough');
    await expect(pending).rejects.toMatchObject({ code: 'ERR_ABORTED' });
    await aborted.close();
  });

  it('open without holding up this thread, and are aborted with their group even then', async () => {
    await using group = await Communicator.nccl({ gpus: [0, 1] });
    let opened = false;
    const opening = group.openRanks().then((ranks) => {
      opened = true;
      return ranks;
    });
    group.abort('too early');
    // What was done before openRanks() returned would be known without a turn of the event loop.
    for (let i = 0; i < 100; ++i) await Promise.resolve();
    expect(opened).toBe(false);
    const [first] = await opening;
    await expect(first!.barrier()).rejects.toThrow(errorWith('ERR_ABORTED', /too early/));
  });

  it('of one GPU sum with themselves', async () => {
    await using alone = await Communicator.nccl({ gpus: [1] });
    const [one] = await alone.openRanks();
    using data = DeviceBuffer.alloc(1, 'float32', 2);
    await data.copyFrom(Float32Array.of(1, 2));
    await one!.allReduce(data, { scale: 2 });
    expect(await data.copyTo()).toEqual(Float32Array.of(2, 4));
  });
});
