// Collectives with counts where ranks are GPUs: of one process as a group and as ranks, and of a process each.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { gpuDevices } from '../../lib/gpu/devices.js';
import { native } from '../../lib/native/load.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';

const size = 4;
const all = Array.from({ length: size }, (_, rank) => rank);
const made: DeviceBuffer[] = [];
afterEach(() => made.splice(0).forEach((one) => one.dispose()));

const countOf = (from: number, to: number) => 300 * ((from * 2 + to) % 4);
const block = (from: number, to: number) =>
  Array.from({ length: countOf(from, to) }, (_, i) => (from * 31 + to * 7 + i) % 128);

describe.skipIf(gpuDevices().length < size)('GPUs of one process', () => {
  let group: LocalGroup<'gpu'>;
  let ranks: readonly Communicator<'gpu'>[];
  beforeAll(async () => {
    group = await Communicator.nccl({ gpus: all });
    ranks = await group.openRanks();
  });
  afterAll(() => group.close());

  const filled = async (rank: number, values: readonly number[]) => {
    const buffer = DeviceBuffer.alloc(rank, 'int32', values.length);
    made.push(buffer);
    await buffer.copyFrom(Int32Array.from(values));
    return buffer;
  };
  const numbers = async (buffer: DeviceBuffer<'int32'>) => [...(await buffer.copyTo())];

  it('move 8-bit floats', async (context) => {
    if (!native().gpuLibraries().ncclFloat8) context.skip('this NCCL has no 8-bit floats');
    const datas = all.map((r) => {
      const buffer = DeviceBuffer.alloc(r, 'float8e4m3', r);
      made.push(buffer);
      return buffer;
    });
    await Promise.all(datas.map((one, r) => one.copyFrom(new Uint8Array(r).fill(r))));
    const results = await group.allGatherV(datas, { counts: [0, 1, 2, 3] });
    made.push(...results.map(({ data }) => data));
    for (const { data } of results) {
      expect([...(await data.copyTo())]).toEqual([1, 2, 2, 3, 3, 3]);
    }
  });

  it('hear of a mismatch what the others hear, and go on', async () => {
    const datas = await Promise.all(all.map((r) => filled(r, block(r, 1))));
    const settled = await Promise.allSettled(
      ranks.map((one, r) => one.allGatherV(datas[r]!, { counts: [0, 0, 0, r] })),
    );
    const messages = settled.map((one) =>
      one.status === 'rejected' ? (one.reason as Error).message : 'done',
    );
    expect(new Set(messages).size).toBe(1);
    expect(messages[0]).toMatch(/rank 0 .*\d+ elements.*rank \d/u);
    const sums = await Promise.all(
      ranks.map(async (one, r) => {
        const ok = await filled(r, [1]);
        await one.allReduce(ok);
        return await numbers(ok);
      }),
    );
    expect(sums).toEqual(all.map(() => [4]));
  });
});
