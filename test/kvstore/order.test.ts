// MXNet's own idiom: pushes and pulls that nobody awaits, into the same arrays. Its engine runs what shares an array in
// the order of the calls.
import { afterEach, expect, it } from 'vitest';

import type { KVStore } from '../../lib/kvstore/kvstore.js';
import { closeAll, filled, open } from './support.js';

afterEach(closeAll);

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
