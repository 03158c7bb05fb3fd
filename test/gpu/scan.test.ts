// scan and exscan of ranks that are GPUs: NCCL has none, they are made of its reduce-scatter.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { devices } from '../../lib/gpu/devices.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';

const gpus = devices().map(({ ordinal }) => ordinal);
const sizes = [1, 2, 3, 4].filter((n) => n <= gpus.length);
const greatest = 2 ** 31 - 1;

const made: DeviceBuffer[] = [];
afterEach(() => made.splice(0).forEach((buffer) => buffer.dispose()));

async function onGpu(gpu: number, values: Int32Array): Promise<DeviceBuffer<'int32'>> {
  const buffer = DeviceBuffer.alloc(gpu, 'int32', values.length);
  made.push(buffer);
  await buffer.copyFrom(values);
  return buffer;
}
const dataOf = (rank: number, length: number) =>
  Int32Array.from({ length }, (_, i) => 100 * (rank + 1) - (i % 90) * (rank + 1));

describe.each(sizes)('on %i GPUs', (n) => {
  const own = gpus.slice(0, n);
  let group: LocalGroup<'gpu'>;
  beforeAll(async () => {
    group = await Communicator.nccl({ gpus: own });
  });
  afterAll(() => group.close());

  // Lengths that grow and shrink again: memory is kept between calls.
  it.each([1, 70_001, 0, 4097])(
    '%i numbers of the ranks so far, in place and not',
    async (count) => {
      const datas = own.map((_, rank) => dataOf(rank, count));
      const sums = own.map((_, rank) =>
        Int32Array.from({ length: count }, (_unused, i) =>
          datas.slice(0, rank + 1).reduce((sum, data) => sum + data[i]!, 0),
        ),
      );
      const least = own.map((_, rank) =>
        Int32Array.from({ length: count }, (_unused, i) =>
          Math.min(greatest, ...datas.slice(0, rank).map((data) => data[i]!)),
        ),
      );
      const buffers = await Promise.all(own.map((gpu, rank) => onGpu(gpu, datas[rank]!)));
      const outs = await Promise.all(own.map((gpu) => onGpu(gpu, new Int32Array(count))));
      const given = await group.scan(buffers, { out: outs });
      expect(given.map((one, i) => one === outs[i])).toEqual(own.map(() => true));
      expect(await Promise.all(outs.map((one) => one.copyTo()))).toEqual(sums);
      expect(await Promise.all(buffers.map((one) => one.copyTo()))).toEqual(datas);
      await group.exscan(buffers, { op: 'min' });
      expect(await Promise.all(buffers.map((one) => one.copyTo()))).toEqual(least);
    },
  );

  it('have no average', async () => {
    const buffers = await Promise.all(own.map((gpu) => onGpu(gpu, new Int32Array(1))));
    // @ts-expect-error -- there is no such op of scans
    const call = group.scan(buffers, { op: 'avg' });
    await expect(call).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    await group.scan(buffers);
  });
});
