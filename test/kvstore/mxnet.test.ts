// The cases of MXNet's own kvstore tests (test_kvstore.py, test_kvstore_custom.py and the nightly one), exact.
import { afterEach, describe, expect, it } from 'vitest';

import type { KVStore } from '../../lib/kvstore/kvstore.js';
import type { Key } from '../../lib/kvstore/keys.js';
import type { StoreTypeName } from '../../lib/kvstore/types.js';
import { filled, open, closeAll } from './support.js';

const size = 16;
const full = (value: number) => filled(size, value);
const kinds: readonly { kind: string; single: Key; list: readonly Key[] }[] = [
  { kind: 'int', single: 3, list: [5, 7, 11] },
  { kind: 'string', single: 'a', list: ['b', 'c', 'd'] },
];

afterEach(closeAll);

describe.each(kinds)('$kind keys', ({ single, list }) => {
  async function zeros(type: StoreTypeName = 'local'): Promise<KVStore> {
    const kv = await open(type);
    await kv.init(single, full(0));
    await kv.init(
      list,
      list.map(() => full(0)),
    );
    return kv;
  }

  it('runs an updater with keys of its kind', async () => {
    const kv = await zeros();
    const seen = new Set<string>();
    await kv.setUpdater((key, received, stored) => {
      seen.add(typeof key);
      for (let i = 0; i < stored.length; i++) {
        stored[i] = Number(stored[i]) + Number(received[i]);
      }
    });
    const devices = () => Array.from({ length: 4 }, () => full(1));
    const outs = devices();
    await kv.push(single, devices());
    await kv.pull(single, outs);
    for (const out of outs) expect(out).toEqual(full(4));
    const lists = list.map(() => devices());
    for (let i = 0; i < 4; i++)
      await kv.push(
        list,
        list.map(() => devices()),
      );
    await kv.pull(list, lists);
    for (const out of lists.flat()) expect(out).toEqual(full(16));
    expect([...seen]).toEqual([typeof single]);
  });

  it('refuses keys of the other kind', async () => {
    const kv = await open('local');
    await kv.init(single, full(1));
    const other = typeof single === 'number' ? 'x' : 12;
    const kind = { code: 'ERR_INVALID_ARG_TYPE' };
    await expect(kv.init(other, full(0))).rejects.toMatchObject(kind);
    await expect(kv.push(other, full(0))).rejects.toMatchObject(kind);
    await expect(kv.pull(other, full(0))).rejects.toMatchObject(kind);
    await expect(kv.rowSparsePull(other, full(0), [0])).rejects.toMatchObject(kind);
    await expect(kv.init([other], [full(0)])).rejects.toMatchObject(kind);
    await expect(kv.push([other], [full(0)])).rejects.toMatchObject(kind);
    await expect(kv.pull([single, other], [full(0), full(1)])).rejects.toMatchObject(kind);
  });

  it.each(['device', 'local'] as const)('broadcasts and push-pulls on %s', async (type) => {
    const kv = await open(type);
    const devices = (value: number) => Array.from({ length: 4 }, () => full(value));
    const out = full(0);
    await kv.broadcast(single, full(1), out);
    expect(out).toEqual(full(1));
    const lists = list.map(() => devices(5));
    await kv.broadcast(
      list,
      list.map(() => full(0)),
      lists,
    );
    for (const one of lists.flat()) expect(one).toEqual(full(0));
    const outs = devices(0);
    await kv.pushPull(single, devices(1), outs);
    for (const one of outs) expect(one).toEqual(full(4));
    const values = devices(1);
    await kv.pushPull(single, values);
    for (const one of values) expect(one).toEqual(full(4));
    await kv.pushPull(
      list,
      list.map(() => devices(2)),
      lists,
    );
    for (const one of lists.flat()) expect(one).toEqual(full(8));
    const inPlace = list.map(() => devices(2));
    await kv.pushPull(list, inPlace);
    for (const one of inPlace.flat()) expect(one).toEqual(full(8));
  });
});

it('several keys are pulled into one array, where the last of them stays', async () => {
  const kv = await open('local');
  await kv.init([1, 2, 3], [filled(4, 1), filled(4, 2), filled(4, 3)]);
  const [out, other] = [filled(4, 0), filled(4, 0)];
  await kv.pull([1, 2, 3], [out, out, out]);
  expect(out).toEqual(filled(4, 3));
  await kv.pull([3, 1, 2], [[out, other], out.subarray(0), other]);
  expect([...out, ...other]).toEqual([1, 1, 1, 1, 2, 2, 2, 2]);
  await kv.pull([1, 2, 1], [out, out, other]);
  expect([...out, ...other]).toEqual([2, 2, 2, 2, 1, 1, 1, 1]);
});
