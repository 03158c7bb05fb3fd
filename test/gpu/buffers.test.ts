import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, expectTypeOf, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { pinnedArray } from '../../lib/gpu/pinned.js';
import { native } from '../../lib/native/load.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { commonDtypes, elementSize } from '../../lib/tensor/dtype.js';
import type { CommonDType } from '../../lib/tensor/dtype.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, valuesOf } from '../support/numbers.js';

const gpus = gpuDevices();
/** The second GPU, or the only one again. */
const other = 1 % gpus.length;

/** Values that differ by index and that every dtype holds. */
const some = (length: number) => Array.from({ length }, (_, i) => (i * 7 + 1) % 101);

async function bufferOf(values: readonly number[], device = 0) {
  const buffer = DeviceBuffer.alloc(device, 'float32', values.length);
  await buffer.copyFrom(Float32Array.from(values));
  return buffer;
}
const read = async (buffer: DeviceBuffer<'float32'>) => [...(await buffer.copyTo())];

/** Calls past the types, as JavaScript would. */
type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>;

describe('a DeviceBuffer', () => {
  it.each(commonDtypes)('of %s takes an array and gives it back', async (dtype) => {
    for (const length of [0, 1, 13, 70_001]) {
      using buffer = DeviceBuffer.alloc<CommonDType>(0, dtype, length);
      expect(buffer).toMatchObject({
        device: 0,
        dtype,
        length,
        byteOffset: 0,
        disposed: false,
        byteLength: length * elementSize(dtype),
      });
      await buffer.copyFrom(arrayOf(dtype, some(length)));
      expect(valuesOf(dtype, await buffer.copyTo())).toEqual(some(length));
      const into = arrayOf(dtype, new Array<number>(length).fill(0));
      expect(await buffer.copyTo(into)).toBe(into);
      expect(valuesOf(dtype, into)).toEqual(some(length));
    }
  });

  it('is on the GPU that was named', async () => {
    using buffer = await bufferOf([1, 2, 3], other);
    expect(buffer.device).toBe(other);
    expect(await read(buffer)).toEqual([1, 2, 3]);
  });

  it('is tied to its dtype by types', () => {
    using buffer = DeviceBuffer.alloc(0, 'bfloat16', 1);
    expectTypeOf(buffer).toEqualTypeOf<DeviceBuffer<'bfloat16'>>();
    expectTypeOf(() => buffer.copyTo()).returns.resolves.toEqualTypeOf<Uint16Array>();
    expectTypeOf(buffer).toExtend<DeviceBuffer>();
    expectTypeOf(buffer).not.toExtend<DeviceBuffer<'float16'>>();
    expectTypeOf(buffer).toExtend<Disposable>();
    expectTypeOf<Parameters<DeviceBuffer<'int64'>['fill']>[0]>().toEqualTypeOf<bigint>();
    expectTypeOf<Parameters<DeviceBuffer<'int8'>['copyFrom']>[0]>().toEqualTypeOf<Int8Array>();
  });

  it('has the values that lib/native/gpu.ts declares', () => {
    const buffer = native().NativeDeviceBuffer.alloc(other, 8, 5);
    const part = buffer.slice(2, 4);
    expect({ ...buffer }).toEqual({
      device: other,
      dtype: 8,
      length: 5,
      byteOffset: 0,
      byteLength: 20,
      registration: null,
      buffer,
    });
    expect({ ...part }).toEqual({
      device: other,
      dtype: 8,
      length: 2,
      byteOffset: 8,
      byteLength: 8,
      registration: null,
      buffer,
    });
    buffer.dispose();
  });
});

describe('slice', () => {
  it('shows a part of the same memory', async () => {
    using whole = await bufferOf([0, 1, 2, 3, 4, 5, 6, 7]);
    const part = whole.slice(2, 6);
    expect(part).toMatchObject({ length: 4, byteOffset: 8, byteLength: 16, dtype: 'float32' });
    expect(await read(part)).toEqual([2, 3, 4, 5]);
    const inner = part.slice(1, 3);
    await inner.copyFrom(Float32Array.of(30, 40));
    expect(await read(whole)).toEqual([0, 1, 2, 30, 40, 5, 6, 7]);
    expect(await read(whole.slice(6))).toEqual([6, 7]);
    expect(await read(whole.slice(8))).toEqual([]);
  });

  it('refuses what lies outside', () => {
    using buffer = DeviceBuffer.alloc(0, 'int8', 4);
    expect(() => buffer.slice(0, 5)).toThrow(errorWith('ERR_OUT_OF_RANGE', /0 to 4 .*end.* 5$/));
    expect(() => buffer.slice(3, 2)).toThrow(errorWith('ERR_OUT_OF_RANGE', /3 to 4 .*end.* 2$/));
    expect(() => buffer.slice(-1)).toThrow(RangeError);
  });
});

describe('fill', () => {
  it.each(commonDtypes)('gives every element of %s the value', async (dtype) => {
    const wide = dtype === 'int64' || dtype === 'uint64';
    // Three elements apart from the rest; more bytes than are written from the host.
    for (const length of [0, 1, 5, 100_003]) {
      using buffer = DeviceBuffer.alloc<CommonDType>(0, dtype, length);
      for (const value of [7, 0]) {
        await buffer.fill(wide ? BigInt(value) : value);
        const values = valuesOf(dtype, await buffer.copyTo());
        expect(values.length).toBe(length);
        expect(values.every((one) => one === value)).toBe(true);
      }
    }
  });

  it('touches a slice alone', async () => {
    using buffer = await bufferOf([1, 2, 3, 4]);
    await buffer.slice(1, 3).fill(-0.5);
    expect(await read(buffer)).toEqual([1, -0.5, -0.5, 4]);
  });

  it('refuses what the dtype does not hold', async () => {
    using bytes = DeviceBuffer.alloc(0, 'uint8', 2);
    using longs = DeviceBuffer.alloc(0, 'int64', 2);
    await expect(bytes.fill(256)).rejects.toThrow(
      errorWith('ERR_OUT_OF_RANGE', /255.*uint8.*value.*256/),
    );
    await expect(bytes.fill(0.5)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await expect(longs.fill(2n ** 63n)).rejects.toBeInstanceOf(RangeError);
    // @ts-expect-error -- 64-bit integers are bigints
    await expect(longs.fill(1)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /bigint.*int64.*value.* 1$/),
    );
    await longs.fill(-(2n ** 63n));
    expect([...(await longs.copyTo())]).toEqual([-(2n ** 63n), -(2n ** 63n)]);
  });
});

describe('copyBetween', () => {
  it('copies on a GPU and between GPUs', async () => {
    using from = await bufferOf(some(1001));
    for (const device of new Set([0, other])) {
      using to = DeviceBuffer.alloc(device, 'float32', 1001);
      await DeviceBuffer.copyBetween(from, to);
      expect(await read(to)).toEqual(some(1001));
    }
    using part = await bufferOf([1, 2, 3, 4]);
    await DeviceBuffer.copyBetween(part.slice(0, 2), part.slice(2));
    expect(await read(part)).toEqual([1, 2, 1, 2]);
  });

  it('refuses other dtypes and lengths, and memory that overlaps', async () => {
    using from = DeviceBuffer.alloc(0, 'float32', 4);
    using short = DeviceBuffer.alloc(other, 'float32', 3);
    using ints = DeviceBuffer.alloc(0, 'int32', 4);
    await expect(DeviceBuffer.copyBetween(from, short)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', new RegExp(`4 float32.* to,.*3 float32.*gpu:${other}`)),
    );
    // @ts-expect-error -- another dtype
    await expect(DeviceBuffer.copyBetween(from, ints)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
    await expect(DeviceBuffer.copyBetween(from.slice(0, 3), from.slice(1))).rejects.toMatchObject({
      code: 'ERR_BUFFER_OVERLAP',
    });
  });
});

describe('arguments', () => {
  it('are checked', async () => {
    using buffer = DeviceBuffer.alloc(0, 'float32', 4);
    const loose = buffer as unknown as Loose;
    await expect(loose['copyFrom']?.(new Float64Array(4))).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /'float64'.*from.*dtype.*'float32'/),
    );
    await expect(loose['copyFrom']?.(buffer)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_TYPE',
    });
    await expect(buffer.copyFrom(new Float32Array(5))).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /4 elements.*from.*5/),
    );
    await expect(buffer.copyTo(new Float32Array(3))).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /for to.*3/),
    );
    expect(() => DeviceBuffer.alloc(0, 'float' as 'float32', 4)).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /int8.*dtype.*'float'/),
    );
    expect(() => DeviceBuffer.alloc(0, 'float32', -1)).toThrow(RangeError);
    expect(() => DeviceBuffer.alloc(0, 'float32', 2 ** 52)).toThrow(
      errorWith('ERR_OUT_OF_MEMORY', /gpu:0/),
    );
    expect(() => DeviceBuffer.alloc('0' as never, 'float32', 1)).toThrow(TypeError);
  });

  it('name the GPUs there are', () => {
    expect(() => DeviceBuffer.alloc(gpus.length, 'int8', 1)).toThrow(
      new RegExp(`no gpu:${gpus.length}.* ${gpus.length === 1 ? 'one' : gpus.length} GPU`),
    );
  });

  it('are checked by native code too', () => {
    const { NativeDeviceBuffer } = native();
    const buffer = NativeDeviceBuffer.alloc(0, 8, 4);
    const impostor = Object.create(NativeDeviceBuffer.prototype) as typeof buffer;
    expect(() => buffer.copyFrom(impostor)).toThrow(/for from/);
    expect(() => buffer.copyFrom(new Float32Array(3))).toThrow(/4 elements.*from.*3/);
    expect(() => buffer.copyTo(new Int32Array(4))).toThrow(/for to.*TypedArray/);
    expect(() => buffer.slice(1, 5)).toThrow(/for end/);
    expect(() => NativeDeviceBuffer.alloc(0, 8, 2 ** 53 - 1)).toThrow();
    expect(() => new (NativeDeviceBuffer as unknown as new () => unknown)()).toThrow(/alloc/);
    buffer.dispose();
    expect(() => buffer.fill(new Float32Array(1))).toThrow(/a disposed one/);
  });
});

describe('memory of a pending copy', () => {
  it('may not be written, nor read while it is written', async () => {
    using buffer = await bufferOf([1, 2, 3, 4]);
    const host = new Float32Array(4);
    const reading = buffer.copyTo(host);
    await expect(buffer.fill(0)).rejects.toThrow(
      errorWith('ERR_BUFFER_IN_USE', /fill writes.*copyTo.*reading/),
    );
    await expect(buffer.copyFrom(host)).rejects.toMatchObject({ code: 'ERR_BUFFER_IN_USE' });
    await Promise.all([reading, buffer.copyTo()]);

    const left = buffer.slice(0, 2);
    const right = buffer.slice(2);
    await Promise.all([left.fill(8), right.fill(9)]);
    const writing = left.fill(5);
    await expect(buffer.copyTo()).rejects.toMatchObject({ code: 'ERR_BUFFER_IN_USE' });
    await expect(buffer.slice(1, 3).fill(1)).rejects.toMatchObject({ code: 'ERR_BUFFER_IN_USE' });
    await writing;
    expect(await read(buffer)).toEqual([5, 5, 9, 9]);
  });
});

/** More than half of a GPU: there is no room for two. */
const large = Math.floor((gpus[0]?.memoryBytes ?? 0) * 0.6);
const allocLarge = () => DeviceBuffer.alloc(0, 'uint8', large);

describe('dispose', () => {
  it('frees the memory at once', () => {
    const first = allocLarge();
    expect(allocLarge).toThrow(
      errorWith('ERR_OUT_OF_MEMORY', new RegExp(`\\b${large} bytes.*gpu:0.*bytes free`)),
    );
    first.dispose();
    allocLarge().dispose();
  });

  it('ends the buffer and its slices, and is idempotent', async () => {
    const buffer = await bufferOf([1, 2, 3]);
    const part = buffer.slice(1);
    buffer.dispose();
    buffer[Symbol.dispose]();
    expect([buffer.disposed, part.disposed]).toEqual([true, true]);
    for (const one of [buffer, part]) {
      await expect(one.copyTo()).rejects.toThrow(
        errorWith('ERR_INVALID_ARG_VALUE', /DeviceBuffer.*this.*disposed/),
      );
      await expect(one.fill(1)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
      expect(() => one.slice()).toThrow(/a disposed one/);
    }
    using target = DeviceBuffer.alloc(0, 'float32', 3);
    await expect(DeviceBuffer.copyBetween(buffer, target)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /for from.*disposed/),
    );
  });

  it('of a slice ends that slice alone', async () => {
    using buffer = await bufferOf([1, 2, 3]);
    const part = buffer.slice(1);
    part.dispose();
    expect([buffer.disposed, part.disposed]).toEqual([false, true]);
    expect(await read(buffer)).toEqual([1, 2, 3]);
  });

  it('waits for copies that are pending', async () => {
    const length = 1 << 20;
    const buffer = DeviceBuffer.alloc(0, 'float32', length);
    await buffer.fill(7);
    const part = buffer.slice(1);
    // More than can have begun when dispose() is called.
    const pending = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? buffer : part).copyTo());
    part.dispose();
    buffer.dispose();
    for (const [i, copy] of (await Promise.all(pending)).entries()) {
      expect(copy).toHaveLength(i % 2 === 0 ? length : length - 1);
      expect(copy.every((one) => one === 7)).toBe(true);
    }
    // And is freed then.
    allocLarge().dispose();
  });

  it('is what the collector does with buffers that nobody knows any more', async () => {
    // Three times what the GPU has. Objects this small alone would never bring the collector: it is told what is
    // behind them.
    const tenth = Math.floor(large / 6);
    for (let i = 0; i < 30; ++i) {
      const part = DeviceBuffer.alloc(0, 'uint8', tenth).slice(5, 9);
      await part.fill(i);
      expect([...(await part.copyTo())]).toEqual([i, i, i, i]);
      // Finalizers run between turns.
      await turn();
    }
  });
});

describe('pinned', () => {
  it('gives zeroed arrays that GPUs copy from and to', async () => {
    const from = pinnedArray('int64', 1000);
    expectTypeOf(from).toEqualTypeOf<BigInt64Array>();
    expect(from).toBeInstanceOf(BigInt64Array);
    expect(from.every((one) => one === 0n)).toBe(true);
    from.forEach((_, i) => (from[i] = BigInt(i)));
    using buffer = DeviceBuffer.alloc(other, 'int64', 1000);
    await buffer.copyFrom(from);
    const to = pinnedArray('int64', 1000);
    await buffer.copyTo(to);
    expect(to).toEqual(from);
  });

  it('has room for nothing, and refuses nonsense', () => {
    expect(pinnedArray('bfloat16', 0)).toEqual(new Uint16Array(0));
    expect(() => pinnedArray('half' as 'float16', 1)).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /int8.*dtype.*'half'/),
    );
    expect(() => pinnedArray('int8', 1.5)).toThrow(RangeError);
  });
});
