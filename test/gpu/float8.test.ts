// The element types that only GPUs have.
import { afterEach, describe, expect, expectTypeOf, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import { gpuDevices } from '../../lib/gpu/devices.js';
import { KVStore } from '../../lib/kvstore/kvstore.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { deviceDtypes, dtypes } from '../../lib/tensor/dtype.js';
import type { Float8DType } from '../../lib/tensor/dtype.js';
import { fromFloat8, toFloat8 } from '../../lib/tensor/float8.js';
import { errorWith } from '../support/errors.js';

const all = gpuDevices();
const gpus = all.map(({ ordinal }) => ordinal);
const types = ['float8e4m3', 'float8e5m2'] as const;

const made: DeviceBuffer[] = [];
afterEach(() => made.splice(0).forEach((buffer) => buffer.dispose()));

async function bufferOf(gpu: number, dtype: Float8DType, values: readonly number[]) {
  const buffer = DeviceBuffer.alloc<Float8DType>(gpu, dtype, values.length);
  made.push(buffer);
  await buffer.copyFrom(Uint8Array.from(values, (value) => toFloat8(dtype, value)));
  return buffer;
}
const valuesOf = async (buffer: DeviceBuffer<Float8DType>) =>
  Array.from(await buffer.copyTo(), (bits) => fromFloat8(buffer.dtype, bits));

describe.each(types)('%s', (dtype) => {
  it('has a buffer whose bits the host sees as bytes', async () => {
    const buffer = await bufferOf(0, dtype, [0, 1, -1.5, 448]);
    expect(buffer).toMatchObject({ dtype, byteLength: 4, length: 4 });
    expect(await valuesOf(buffer)).toEqual([0, 1, -1.5, 448]);
    await buffer.fill(0.25);
    expect(await valuesOf(buffer)).toEqual([0.25, 0.25, 0.25, 0.25]);
    await expect(buffer.copyFrom(new Int8Array(4) as unknown as Uint8Array)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
  });

  it('takes no weights and is in no store', async () => {
    await using group = await Communicator.nccl({ gpus });
    const datas = await Promise.all(gpus.map((gpu) => bufferOf(gpu, dtype, [1])));
    await expect(group.allReduce(datas, { scale: 2 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /scale.*float8/),
    );
    await using kv = await KVStore.create('device', { devices: ['gpu:0'] });
    await expect(kv.init(0, datas[0]!)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /float8/),
    );
  });

  it('is no type of the host', () => {
    expectTypeOf<Float8DType>().not.toExtend<(typeof dtypes)[number]>();
    expect(dtypes).not.toContain(dtype);
    expect(deviceDtypes).toContain(dtype);
    const local = Communicator.local(1);
    expect(() => local.allocShared(dtype as never, 1)).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /int8.*dtype.*'float8/),
    );
  });

  it('is rounded to the nearest, ties to even', () => {
    for (let bits = 0; bits < 256; bits += 1) {
      const value = fromFloat8(dtype, bits);
      if (Number.isFinite(value)) expect(toFloat8(dtype, value)).toBe(bits);
    }
    const largest = dtype === 'float8e4m3' ? 448 : 57_344;
    expect(fromFloat8(dtype, toFloat8(dtype, 1e9))).toBe(largest);
    expect(fromFloat8(dtype, toFloat8(dtype, NaN))).toBeNaN();
    const step = dtype === 'float8e4m3' ? 1 / 8 : 1 / 4;
    expect(fromFloat8(dtype, toFloat8(dtype, 1 + step / 2))).toBe(1);
    expect(fromFloat8(dtype, toFloat8(dtype, 1 + 1.5 * step))).toBe(1 + 2 * step);
    expect(fromFloat8(dtype, toFloat8(dtype, 1 + 0.6 * step))).toBe(1 + step);
  });
});
