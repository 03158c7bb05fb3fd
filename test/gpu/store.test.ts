// KVStore on GPUs, as users meet it. What its engine computes is tested natively (native/test/kvstore).
import { afterEach, describe, expect, expectTypeOf, it, vi } from 'vitest';

import type { StoreTypeName } from '../../lib/kvstore/types.js';
import type { DeviceArrays } from '../../lib/kvstore/arrays.js';
import { SGD, SGLD } from '../../lib/optimizers/index.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { closeAll, filled, open } from '../kvstore/support.js';
import { errorWith } from '../support/errors.js';
import {
  allNumbers,
  disposeAll,
  gpuCount,
  named,
  numbers,
  onEach,
  onGpu,
  spread,
} from '../support/gpu-arrays.js';

afterEach(async () => {
  await closeAll();
  disposeAll();
});

const last = gpuCount - 1;
/** Of each, four devices but for nccl, which wants every GPU once. */
const stores: readonly { type: StoreTypeName; gpus: readonly number[] }[] = [
  { type: 'device', gpus: spread(4) },
  { type: 'device', gpus: [0, 0, 0, 0] },
  { type: 'local', gpus: spread(4) },
  { type: 'nccl', gpus: spread(gpuCount) },
];
const full = (length: number, value: number) => Array.from({ length }, () => value);

/** Calls past the types, as JavaScript would. */
type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>;

describe.each(stores)('$type on $gpus', ({ type, gpus }) => {
  const n = gpus.length;
  const create = () => open(type, { devices: named(gpus) });
  const each = (length: number, value: number) => onEach(gpus, full(length, value));

  it('sums what the devices push, and gives it to each', async () => {
    const kv = await create();
    expect(kv).toMatchObject({ type, rank: 0, numWorkers: 1, devices: named(gpus) });
    await kv.init('w', await onGpu(gpus[n - 1]!, [7, 8, 9]));
    const outs = await each(3, 0);
    await kv.pull('w', outs);
    expect(await allNumbers(outs)).toEqual(gpus.map(() => [7, 8, 9]));
    const grads = await Promise.all(gpus.map((gpu, i) => onGpu(gpu, [i, 10, -i])));
    await kv.push('w', grads);
    await kv.pull('w', outs);
    const sum = gpus.reduce((total, _, i) => total + i, 0);
    expect(await allNumbers(outs)).toEqual(gpus.map(() => [sum, 10 * n, -sum]));
    // What was pushed is the caller's again.
    await grads[0]?.fill(99);
    await kv.pull('w', outs[0]!);
    expect(await numbers(outs[0]!)).toEqual([sum, 10 * n, -sum]);
  });

  it('pushPull in place, lists of keys, a key twice', async () => {
    const kv = await create();
    await kv.init([0, 1], [filled(4, 0), filled(5, 0)]);
    const a = await each(4, 1);
    const b = await each(5, 2);
    await kv.pushPull([0, 1], [a, b]);
    expect(await allNumbers(a)).toEqual(gpus.map(() => full(4, n)));
    expect(await allNumbers(b)).toEqual(gpus.map(() => full(5, 2 * n)));
    const out = await onGpu(gpus[0]!, full(4, 0));
    await kv.push([0, 0], [a, await each(4, 1)]);
    await kv.pull(0, out);
    expect(await numbers(out)).toEqual(full(4, n * n + n));
    await kv.pushPull(0, await each(4, 3), out);
    expect(await numbers(out)).toEqual(full(4, 3 * n));
  });

  it('calls updaters with arrays of the host', async () => {
    const kv = await create();
    await kv.init('w', filled(2, 5));
    const failure = new Error('not today');
    let fails = false;
    await kv.setUpdater((key, received, stored) => {
      if (fails) throw failure;
      expect([key, ...(received as Float32Array)]).toEqual(['w', n, n]);
      const weights = stored as Float32Array;
      (received as Float32Array).forEach((x, i) => (weights[i]! += 10 * x));
    });
    const [grads, outs] = [await each(2, 1), await each(2, 0)];
    await kv.pushPull('w', grads, outs);
    expect(await allNumbers(outs)).toEqual(gpus.map(() => full(2, 10 * n + 5)));
    fails = true;
    await expect(kv.push('w', grads)).rejects.toBe(failure);
    await kv.pull('w', outs);
    expect(await allNumbers(outs)).toEqual(gpus.map(() => full(2, 10 * n + 5)));
  });
});

describe('what does not fit is refused', () => {
  it('arrays of a GPU on a store of CPU devices', async () => {
    const host = await open('device', { devices: 1 });
    const buffer = await onGpu(0, [1]);
    await host.init('w', filled(1, 0));
    await expect(host.push('w', buffer)).rejects.toMatchObject({
      message: expect.stringMatching(/host.*cpu:0.*1 float32 on gpu:0/) as string,
    });
    await expect(host.init('v', buffer)).rejects.toMatchObject({ name: 'TypeError' });
  });

  it.runIf(last > 0)('arrays of a GPU that is none of the store', async () => {
    const kv = await open('device', { devices: named([0]) });
    await kv.init('w', filled(1, 0));
    await expect(kv.pull('w', await onGpu(last, [1]))).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`gpu:0.*on gpu:${String(last)}`)) as string,
    });
    await expect(kv.init('v', await onGpu(last, [1]))).rejects.toMatchObject({ name: 'TypeError' });
  });

  it('more arrays than devices, other lengths and types, disposed ones', async () => {
    const kv = await open('device', { devices: named([0, 0]) });
    await kv.init('w', filled(2, 0));
    const three = await onEach([0, 0, 0], [1, 2]);
    await expect(kv.push('w', three)).rejects.toThrow('at most 2');
    await expect(kv.push('w', await onGpu(0, [1]))).rejects.toThrow('2 elements');
    using ints = DeviceBuffer.alloc(0, 'int32', 2);
    await expect(kv.push('w', ints)).rejects.toThrow('int32');
    const gone = await onGpu(0, [1, 2]);
    gone.dispose();
    await expect(kv.push('w', gone)).rejects.toThrow('disposed');
    const one = await onGpu(0, [1, 2]);
    await expect(kv.pull('w', [one, one])).rejects.toMatchObject({ code: 'ERR_BUFFER_OVERLAP' });
  });

  it('devices that are not there, and both kinds together', async () => {
    await expect(open('device', { devices: named([gpuCount]) })).rejects.toThrow(
      new RegExp(String(gpuCount)),
    );
    await expect(open('device', { devices: ['gpu:0', 'cpu:0'] })).rejects.toThrow('GPUs only');
    await expect(open('nccl', { devices: named([0, 0]) })).rejects.toThrow(
      errorWith('ERR_UNSUPPORTED', /each GPU/),
    );
    await expect(open('nccl', { devices: 2 })).rejects.toThrow(
      errorWith('ERR_BACKEND_UNAVAILABLE', /needs GPUs/),
    );
  });

  it('natively too, where TypeScript is bypassed', async () => {
    const { native } = await import('../../lib/native/load.js');
    const store = native().NativeKVStore.onGpus([0], 0, 1000, true, false) as unknown as Loose;
    try {
      const key = store['define']?.('w', 8, 2, 1);
      const submit = (array: unknown, op = 1) =>
        store['submit']?.(op, key, [array], null, 0, false);
      expect(() => submit([1, 2])).toThrow('Float32Array');
      expect(() => submit('nothing', 0)).toThrow(TypeError);
      expect(() => submit(new Float32Array(3), 0)).toThrow('2 elements');
      expect(() => store['submitPrepared']?.({}, 0)).toThrow('prepared');
      await submit(new Float32Array(2), 0);
    } finally {
      void store['close']?.();
    }
  });
});

it('the host takes the steps of float64 keys and of some optimizers, which is said once', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const told = () => warn.mock.calls.map(([, details]) => details);
  // A function of the caller takes an optimizer's place.
  const updated = await open('device', { devices: named(spread(2)) });
  await updated.setOptimizer(new SGD());
  await updated.setUpdater(() => undefined);
  await updated.init('wide', Float64Array.of(1));
  expect(told()).toEqual([]);
  for (const type of ['local', 'device'] as const) {
    const kv = await open(type, { devices: named(spread(2)) });
    await kv.init('w', Float32Array.of(1, 2));
    await kv.setOptimizer(new SGD({ learningRate: 0.5 }));
    expect(told()).toEqual([]);
    await kv.init('wide', Float64Array.of(1, 2 + 2 ** -40));
    const once = type === 'local' ? [] : [{ type: 'GradlinkWarning', code: 'GRADLINK_HOST_STEPS' }];
    expect(told()).toEqual(once);
    using grad = DeviceBuffer.alloc(0, 'float64', 2);
    await grad.copyFrom(Float64Array.of(2, 4));
    await kv.pushPull('wide', grad);
    expect([...(await grad.copyTo())]).toEqual([0, 2 ** -40]);
    await kv.setOptimizer(new SGLD());
    expect(told()).toEqual(once);
  }
});

it('types take either kind of array', () => {
  expectTypeOf<DeviceBuffer<'float32'>>().toExtend<DeviceArrays>();
  expectTypeOf<DeviceBuffer[]>().toExtend<DeviceArrays>();
  expectTypeOf<Float32Array>().toExtend<DeviceArrays>();
});
