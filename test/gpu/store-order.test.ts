// Pushes and pulls into the same arrays of GPUs that nobody awaits, as in test/kvstore/order.test.ts.
import { afterEach, describe, expect, it } from 'vitest';

import type { StoreTypeName } from '../../lib/kvstore/types.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { closeAll, open } from '../kvstore/support.js';
import { disposeAll, gpuCount, named, spread } from '../support/gpu-arrays.js';

afterEach(async () => {
  await closeAll();
  disposeAll();
});

/** A power of two: a round multiplies by it, exactly. */
const distinct = gpuCount >= 4 ? 4 : gpuCount >= 2 ? 2 : 1;
const stores: readonly { type: StoreTypeName; gpus: readonly number[] }[] = [
  { type: 'device', gpus: spread(4) },
  { type: 'device', gpus: [0, 0] },
  { type: 'local', gpus: spread(2) },
  { type: 'nccl', gpus: spread(distinct) },
];

describe.each(stores)('$type on $gpus', ({ type, gpus }) => {
  it.each([
    ['small', 16, 200],
    ['large', 40_000, 20],
  ])('rounds in place of %s arrays are awaited at their end alone', async (_, length, rounds) => {
    const kv = await open(type, { devices: named(gpus) });
    const keys = [0, 1, 2];
    const made = (value: number) =>
      Promise.all(
        gpus.map(async (gpu) => {
          const buffer = DeviceBuffer.alloc(gpu, 'float64', length);
          await buffer.copyFrom(new Float64Array(length).fill(value));
          return buffer;
        }),
      );
    const arrays = await Promise.all(keys.map((key) => made(key + 1)));
    const zeros = new Float64Array(length);
    await kv.init(keys, [zeros, zeros, zeros]);
    const calls: Promise<void>[] = [];
    for (let round = 0; round < rounds; round++) {
      if (round % 2 === 0) {
        for (const key of keys) calls.push(kv.push(key, arrays[key]!));
        for (const key of keys) calls.push(kv.pull(key, arrays[key]!));
      } else {
        // Lists, which the store recognises when they come again.
        calls.push(kv.push(keys, arrays), kv.pull(keys, arrays));
      }
    }
    await Promise.all(calls);
    for (const key of keys) {
      const right = (key + 1) * gpus.length ** rounds;
      for (const array of arrays[key]!) {
        expect((await array.copyTo()).every((value) => value === right)).toBe(true);
      }
    }
    arrays.flat().forEach((array) => {
      array.dispose();
    });
  });
});
