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
});
