// MXNet's own idiom: pushes and pulls that nobody awaits, into the same arrays. Its engine runs what shares an array in
// the order of the calls.
import { afterEach, describe, expect, it } from 'vitest';

import { Test } from '../../lib/optimizers/index.js';
import type { KVStore } from '../../lib/kvstore/kvstore.js';
import { closeAll, filled, open } from './support.js';

afterEach(closeAll);

const rounds = 200;

describe.each(['local', 'device'] as const)('on %s', (type) => {
  // Every round multiplies by the number of devices, a power of two: exact.
  it.each([
    ['small', 16, 4],
    ['large', 200_000, 2],
  ])('rounds in place of %s arrays are awaited at their end alone', async (_, length, devices) => {
    const kv = await open(type, { devices });
    const keys = [0, 1, 2];
    const arrays = keys.map((key) =>
      Array.from({ length: devices }, () => new Float64Array(length).fill(key + 1)),
    );
    const zeros = new Float64Array(length);
    await kv.init(keys, [zeros, zeros, zeros]);
    const calls: Promise<void>[] = [];
    for (let round = 0; round < rounds; round++) {
      for (const key of keys) calls.push(kv.push(key, arrays[key]!, { priority: -key }));
      for (const key of keys) calls.push(kv.pull(key, arrays[key]!, { priority: -key }));
    }
    await Promise.all(calls);
    for (const key of keys) {
      const right = (key + 1) * devices ** rounds;
      for (const array of arrays[key]!) expect(array.every((value) => value === right)).toBe(true);
    }
  });

  it('an array of two keys is written and read in the order of the calls', async () => {
    const kv = await open(type, { devices: 2 });
    const big = 200_000;
    await kv.init(['a', 'b'], [filled(big, 1), filled(big, 2)]);
    const array = filled(big, 0);
    const out = filled(big, 0);
    for (let round = 1; round <= 20; round++) {
      const calls = [
        kv.pull('a', array),
        kv.push('b', [array, array]), // twice a
        kv.pull('b', array),
        kv.push('a', array),
        kv.pull('a', out),
      ];
      await Promise.all(calls);
      expect(out.every((value) => value === 2 ** round)).toBe(true);
    }
  });

  it('an optimizer comes between the pushes called before it and after it', async () => {
    const kv = await open(type);
    const big = 200_000;
    await kv.init(['a', 'b'], [filled(big, 1), filled(big, 10)]);
    const array = filled(big, 5);
    const calls = [
      kv.pull('b', array),
      kv.push('a', array), // waits, and assigns 10
      kv.pull('b', array),
      kv.setOptimizer(new Test()),
      kv.push('a', array), // adds 10
      kv.pull('a', array),
    ];
    await Promise.all(calls);
    expect(array).toEqual(filled(big, 20));
  });
});

it('a failure in between ends its own call alone', async () => {
  const kv: KVStore = await open('local');
  await kv.init(['a', 'b'], [filled(4, 1), filled(4, 2)]);
  const array = filled(4, 0);
  let updates = 0;
  await kv.setUpdater((_, received, stored) => {
    if (++updates === 2) throw new Error('no');
    stored.set(received as never);
  });
  const calls = [
    kv.push('a', array),
    kv.pull('b', array),
    kv.push('a', array),
    kv.pull('a', array),
  ];
  const ends = await Promise.allSettled(calls);
  expect(ends.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
  expect(array).toEqual(filled(4, 0));
});

it('closing waits for what has not begun', async () => {
  const kv = await open('local');
  const big = 200_000;
  await kv.init(['a', 'b'], [filled(big, 1), filled(big, 2)]);
  const array = filled(big, 0);
  const calls = [kv.pull('a', array), kv.pull('b', array)];
  await kv.close();
  await Promise.all(calls);
  expect(array).toEqual(filled(big, 2));
});
