// Buffers that NCCL knows: from a group, from ranks of one process, and from processes of a job.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { gpuDevices } from '../../lib/gpu/devices.js';
import { native } from '../../lib/native/load.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { errorWith } from '../support/errors.js';

const size = Math.min(gpuDevices().length, 2);
const gpus = Array.from({ length: size }, (_, rank) => rank);
const windows = native().gpuLibraries().ncclRegisters === 'symmetric';

describe('buffers of allocRegistered', () => {
  let group: LocalGroup<'gpu'>;
  beforeAll(async () => {
    group = await Communicator.nccl({ gpus });
  });
  afterAll(() => group.close());

  it('are summed as others are, whole or by the same slice', async () => {
    const data = await group.allocRegistered('float32', 1000);
    expect(data.map(({ device, length, dtype }) => ({ device, length, dtype }))).toEqual(
      gpus.map((device) => ({ device, length: 1000, dtype: 'float32' })),
    );
    if (windows && size > 1) {
      expect(data.map(({ registration }) => registration)).toEqual(gpus.map(() => 'symmetric'));
    }
    await Promise.all(data.map((one, rank) => one.fill(rank + 1)));
    const slices = data.map((one) => one.slice(10, 20));
    expect(slices[0]!.registration).toBe(data[0]!.registration);
    await group.allReduce(slices);
    const sum = (size * (size + 1)) / 2;
    for (const [rank, one] of data.entries()) {
      expect([...(await one.copyTo()).slice(8, 12)]).toEqual([rank + 1, rank + 1, sum, sum]);
      one.dispose();
    }
  });

  it.skipIf(size < 2)('are not mixed with others, or with other slices', async () => {
    const data = await group.allocRegistered('int32', 100);
    if (data[0]!.registration !== null) {
      using plain = DeviceBuffer.alloc(1, 'int32', 10);
      const first = data[0]!.slice(0, 10);
      for (const other of [plain, data[1]!.slice(64, 74)]) {
        await expect(group.allReduce([first, other])).rejects.toThrow(
          errorWith('ERR_INVALID_ARG_VALUE', /same slice/),
        );
      }
    }
    await group.allReduce(data);
    data.forEach((one) => one.dispose());
    expect(data.every((one) => one.disposed)).toBe(true);
  });

  it('are of what was asked for, or an error', async () => {
    // @ts-expect-error: not a dtype
    await expect(group.allocRegistered('float33', 1)).rejects.toThrow('dtype');
    await expect(group.allocRegistered('float32', -1)).rejects.toThrow(RangeError);
    const host = Communicator.local(2);
    // @ts-expect-error: ranks in the memory of the host
    await expect(host.allocRegistered('float32', 1)).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
    });
    await host.close();
    const none = await group.allocRegistered('float32', 0);
    expect(none.map(({ length, registration }) => [length, registration])).toEqual(
      gpus.map(() => [0, null]),
    );
  });
});
