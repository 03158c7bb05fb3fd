// List calls on stores of GPUs that come again with the very same lists: what was read of them once is not read again.
import { afterEach, describe, expect, it } from 'vitest';

import type { KVStore } from '../../lib/kvstore/kvstore.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { closeAll, filled, open } from '../kvstore/support.js';
import { onRealGpus } from './setup/fakes.js';
import {
  allNumbers,
  disposeAll,
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

const full = (length: number, value: number) => Array.from({ length }, () => value);

describe('list calls that come again', () => {
  /** Of GPU 0, as a refusal to allocate says it. */
  function freeBytes(): number {
    try {
      DeviceBuffer.alloc(0, 'float32', 2 ** 42);
    } catch (error) {
      return Number(/has (\d+) of \d+ bytes free/.exec(String(error))?.[1]);
    }
    throw new Error('16 TiB were had');
  }

  async function aStore(): Promise<{
    kv: KVStore;
    keys: number[];
    grads: DeviceBuffer<'float32'>[][];
    outs: DeviceBuffer<'float32'>[][];
  }> {
    const gpus = spread(2);
    const kv = await open('device', { devices: named(gpus) });
    const keys = [0, 1, 2];
    await kv.init(
      keys,
      keys.map(() => filled(4, 0)),
    );
    const grads = await Promise.all(keys.map((key) => onEach(gpus, full(4, key + 1))));
    const outs = await Promise.all(keys.map(() => onEach(gpus, full(4, -1))));
    return { kv, keys, grads, outs };
  }

  it('do the same each time, with what the arrays hold then', async () => {
    const { kv, keys, grads, outs } = await aStore();
    for (const factor of [1, 2, 3]) {
      for (const [i, [first]] of grads.entries()) await first?.fill(factor * (i + 1));
      await Promise.all([kv.push(keys, grads), kv.pull(keys, outs)]);
      for (const [i, pulled] of outs.entries()) {
        const sum = factor * (i + 1) + (i + 1);
        expect(await allNumbers(pulled)).toEqual([full(4, sum), full(4, sum)]);
      }
      await kv.pushPull(keys, grads, outs);
    }
  });

  it('notice what has changed in the lists', async () => {
    const { kv, keys, grads, outs } = await aStore();
    await kv.push(keys, grads);
    grads[1]![0] = await onGpu(0, full(4, 100));
    await kv.push(keys, grads);
    await kv.pull(keys, outs);
    expect(await numbers(outs[1]![0]!)).toEqual(full(4, 102));
    // Other keys with the same arrays.
    keys.reverse();
    await kv.push(keys, grads);
    await kv.pull(keys, outs);
    expect(await numbers(outs[0]![0]!)).toEqual(full(4, 2));
    await kv.pull(0, outs[0]![0]!);
    expect(await numbers(outs[0]![0]!)).toEqual(full(4, 6));
    grads[0] = [await onGpu(0, full(5, 0))];
    await expect(kv.push(keys, grads)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
  });

  it('refuse what was disposed of, and what a pending operation uses', async () => {
    const { kv, keys, grads, outs } = await aStore();
    await kv.push(keys, grads);
    await kv.pull(keys, outs);
    const inUse = { code: 'ERR_BUFFER_IN_USE' };
    const whilePulling = async (use: () => Promise<unknown>): Promise<unknown> => {
      // A pull that is done when its call returns is in nobody's way.
      for (let again = 0; again < 100; ++again) {
        const pulled = kv.pull(keys, outs);
        const refusal = await use().catch((error: unknown) => error);
        await pulled;
        if (refusal instanceof Error) return refusal;
      }
      return 'every use was let';
    };
    const other = await aStore();
    expect(await whilePulling(() => outs[0]![0]!.fill(1))).toMatchObject(inUse);
    expect(await whilePulling(() => other.kv.pull(keys, outs))).toMatchObject(inUse);
    expect(await whilePulling(() => other.kv.push(keys, outs))).toMatchObject(inUse);
    const filling = outs[0]![1]!.fill(1);
    await expect(kv.pull(keys, outs)).rejects.toMatchObject(inUse);
    await filling;
    await kv.pull(keys, outs);
    // Reading twice at a time is no conflict.
    await Promise.all([kv.push(keys, grads), kv.push(keys, grads)]);
    grads[2]![0]!.dispose();
    await expect(kv.push(keys, grads)).rejects.toMatchObject({
      name: 'TypeError',
      message: expect.stringContaining('disposed') as string,
    });
    await kv.pull(keys, outs);
  });

  it('keep memory that is disposed of meanwhile until they are done', async () => {
    const { kv, keys, grads, outs } = await aStore();
    await kv.push(keys, grads);
    const pushed = kv.push(keys, grads);
    grads[0]![0]!.dispose();
    await pushed;
    await kv.pull(keys, outs);
    expect(await numbers(outs[0]![0]!)).toEqual(full(4, 2));
  });

  it('hold nothing that is disposed of between them', async (context) => {
    if (onRealGpus) context.skip('other processes take and free memory meanwhile');
    const { kv, keys, grads, outs } = await aStore();
    const large = await onGpu(0, full(1 << 20, 1));
    await kv.init(3, new Float32Array(1 << 20));
    // The very lists, so that the call is remembered.
    const pushed = [...keys, 3];
    const given = [...grads, large];
    for (let again = 0; again < 2; ++again) await kv.push(pushed, given);
    await kv.pull(keys, outs);
    const before = freeBytes();
    large.dispose();
    expect(freeBytes() - before).toBeGreaterThanOrEqual(4 << 20);
  });
});
