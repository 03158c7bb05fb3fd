import { setTimeout as delay } from 'node:timers/promises';

import { afterEach, describe, expect, it, vi } from 'vitest';

import { KVStore } from '../../lib/kvstore/kvstore.js';
import { parseStoreType, storeKinds } from '../../lib/kvstore/types.js';
import { native } from '../../lib/native/load.js';
import { errorWith } from '../support/errors.js';
import { closeAll, filled, open } from './support.js';

afterEach(async () => {
  vi.unstubAllEnvs();
  await closeAll();
});

describe('types', () => {
  it.each([
    ['LOCAL', 'local'],
    ['local_update_cpu', 'local'],
    ['local_allreduce_device', 'device'],
    ['dist', 'dist_sync'],
    ['dist_device_sync', 'dist_sync_device'],
    ['dist_async_device', 'dist_async_device'],
    ['dist_device_async', 'dist_async_device'],
    ['horovod', 'allreduce'],
  ])('%s means %s', (name, kind) => {
    expect(parseStoreType(name)).toEqual({ kind, name: name.toLowerCase() });
  });

  it('does not take an unknown word for local', async () => {
    const listing = new RegExp(`${storeKinds.join(', ')}.*got 'devise'`);
    await expect(KVStore.create('devise' as 'device')).rejects.toThrow(listing);
  });

  it.each([
    ['dist_sync', 'ERR_UNSUPPORTED', 'gradlink launch -n WORKERS -s SERVERS'],
    ['dist_async', 'ERR_UNSUPPORTED', "'allreduce'"],
    ['nccl', 'ERR_BACKEND_UNAVAILABLE', 'local, device, dist_sync'],
  ] as const)('says that %s is not available, and what is', async (type, code, message) => {
    await expect(KVStore.create(type)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message) as string,
    });
  });

  it.each([
    [{ timeoutMs: 0 }, 'timeoutMs'],
    [{ startTimeoutMs: -1 }, 'startTimeoutMs'],
    [{ bigArrayBound: 0 }, 'bigArrayBound'],
  ])('refuses %o', async (options, name) => {
    await expect(KVStore.create('allreduce', options)).rejects.toThrow(name);
  });

  it("takes MXNet's bound of arrays, and names the variable where it is none", async () => {
    vi.stubEnv('MXNET_KVSTORE_BIGARRAY_BOUND', 'many');
    await expect(KVStore.create('allreduce')).rejects.toThrow('MXNET_KVSTORE_BIGARRAY_BOUND');
    const none = KVStore.create('horovod', { bigArrayBound: 0 });
    await expect(none).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    const kv = await KVStore.create('horovod', { bigArrayBound: 1 });
    // That nobody launched: alone.
    expect(kv).toMatchObject({ type: 'horovod', rank: 0, numWorkers: 1, numServers: 0 });
    await kv.close();
  });

  it('of one process has nothing to leave, to tell and to report', async () => {
    const kv = await open('local');
    expect(kv.numServers).toBe(0);
    expect(kv.numDeadNodes()).toBe(0);
    await kv.leave();
    await expect(kv.sendCommandToServers('x')).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' });
    await expect(kv.report()).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' });
    await expect(kv.setServerProfiler('x')).rejects.toThrow(
      errorWith('ERR_UNSUPPORTED', /servers/),
    );
    expect(() => kv.placement()).toThrow(errorWith('ERR_UNSUPPORTED', /dist_sync.*dist_async/));
  });

  it('shows rank, workers, devices and what it can', async () => {
    const kv = await open('device', { devices: 2 });
    expect(kv).toMatchObject({ type: 'device', rank: 0, numWorkers: 1 });
    expect(kv.devices).toEqual(['cpu:0', 'cpu:1']);
    expect(kv.isCapable('optimizer')).toBe(true);
    expect(() => kv.isCapable('flight' as 'optimizer')).toThrow("'optimizer'");
    await kv.barrier();
  });

  it('names CPU devices where a GPU is asked for and there is no driver', async () => {
    vi.stubEnv('GRADLINK_CUDA_LIBRARY', '/nonexistent/libcuda.so.1');
    await expect(KVStore.create('device', { devices: ['gpu:0'] })).rejects.toThrow(
      errorWith('ERR_BACKEND_UNAVAILABLE', /cpu:0/),
    );
  });

  it.each([[0], [2.5], [[]], [['cpu']], [['cpu:0', 'cpu:0']]])(
    'refuses the devices %j',
    async (devices) => {
      await expect(KVStore.create('device', { devices })).rejects.toMatchObject({
        code: expect.stringMatching(/^ERR_/) as string,
      });
    },
  );
});

describe('keys', () => {
  it('tells ints apart that agree in 32 bits', async () => {
    const kv = await open('local');
    const keys = [2, 2 + 2 ** 32, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER];
    await kv.init(
      keys,
      keys.map((_, i) => filled(1, i)),
    );
    const outs = keys.map(() => filled(1, -1));
    await kv.pull(keys, outs);
    expect(outs.map(([x]) => x)).toEqual([0, 1, 2, 3]);
  });

  it.each([[2 ** 53], [1.5], [Number.NaN]])('refuses %d', async (key) => {
    const kv = await open('local');
    await expect(kv.init(key, filled(1, 0))).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
  });

  it('are initialised once', async () => {
    const kv = await open('local');
    await kv.init('a', filled(2, 1));
    await expect(kv.init('a', filled(2, 2))).rejects.toThrow("got 'a'");
    await expect(kv.init(['b', 'b'], [filled(1, 0), filled(1, 0)])).rejects.toThrow("got 'b'");
    await kv.init('b', filled(1, 5));
    const out = filled(2, 0);
    await kv.pull('a', out);
    expect(out).toEqual(filled(2, 1));
  });

  it('must be initialised before use', async () => {
    const kv = await open('local');
    await kv.init('a', filled(2, 1));
    for (const call of [kv.push('z', filled(2, 1)), kv.pull('z', filled(2, 1))]) {
      await expect(call).rejects.toThrow(errorWith('ERR_INVALID_ARG_VALUE', /key.*'z'/));
    }
  });

  it('belong together where a list names one twice', async () => {
    const kv = await open('device', { devices: 2 });
    await kv.init([1, 2], [filled(3, 0), filled(3, 0)]);
    await kv.push([1, 2, 1], [filled(3, 1), filled(3, 5), [filled(3, 10), filled(3, 100)]]);
    const outs = [filled(3, 0), filled(3, 0), filled(3, 0)];
    await kv.pull([1, 2, 1], outs);
    expect(outs.map(([x]) => x)).toEqual([111, 5, 111]);
  });
});

describe('arrays', () => {
  it('may not differ from the first in type, length or number', async () => {
    const kv = await open('device', { devices: 2 });
    await kv.init('a', filled(3, 0));
    await expect(kv.push('a', new Float64Array(3))).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
    await expect(kv.push('a', filled(4, 0))).rejects.toThrow('3 elements');
    const three = [filled(3, 0), filled(3, 0), filled(3, 0)];
    await expect(kv.push('a', three)).rejects.toThrow('at most 2');
    await expect(kv.push('a', [])).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    await expect(kv.pull(['a'], [filled(3, 0), filled(3, 0)])).rejects.toThrow('a list of 1 item');
    await expect(kv.pull('a', undefined as never)).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_TYPE',
    });
  });

  it('are never the stored value', async () => {
    const kv = await open('local');
    const first = filled(4, 1);
    await kv.init('a', first);
    first.fill(-1);
    const out = filled(4, 0);
    await kv.pull('a', out);
    expect(out).toEqual(filled(4, 1));
    out.fill(-2);
    const pushed = filled(4, 3);
    await kv.push('a', pushed);
    pushed.fill(-3);
    const again = filled(4, 0);
    await kv.pull('a', again);
    expect(again).toEqual(filled(4, 3));
  });

  it('are leased while an operation is pending', async () => {
    const kv = await open('local');
    await kv.init('a', filled(4, 0));
    const [value, out] = [filled(4, 1), filled(4, 0)];
    // The updater runs on this thread, so all that is issued together stays pending until the first await.
    await kv.setUpdater((_, received, stored) => stored.set(received as never));
    const pending = [kv.push('a', value), kv.pull('a', out)];
    const other = await open('local');
    await other.init('a', filled(4, 0));
    const refused = [
      other.pull('a', value), // being read
      other.push('a', out), // being written
      other.pushPull('a', filled(4, 0), out.subarray()),
    ];
    for (const one of await Promise.allSettled(refused)) {
      expect(one).toMatchObject({ reason: { code: 'ERR_BUFFER_IN_USE' } });
    }
    await Promise.all(pending);
    await other.pushPull('a', out, value);
  });

  it('that are written may not overlap', async () => {
    const kv = await open('local');
    await kv.init(['a', 'b'], [filled(4, 0), filled(4, 0)]);
    const memory = new Float32Array(8);
    const [low, middle] = [memory.subarray(0, 4), memory.subarray(2, 6)];
    const overlaps = { code: 'ERR_BUFFER_OVERLAP' };
    await expect(kv.pull('a', [low, middle])).rejects.toMatchObject(overlaps);
    await expect(kv.pushPull('a', low, middle)).rejects.toMatchObject(overlaps);
    await expect(kv.pushPull(['a', 'b'], [low, low])).rejects.toMatchObject(overlaps);
    await kv.pushPull(['a', 'b'], [memory.subarray(0, 4), memory.subarray(4, 8)]);
  });
});

describe('rows', () => {
  it('must be there', async () => {
    const kv = await open('local');
    await kv.init('e', filled(6, 1), { shape: [3, 2] });
    for (const ids of [[3], [-1], [0.5]]) {
      await expect(kv.rowSparsePull('e', filled(6, 0), ids)).rejects.toThrow('rows from 0 to 2');
    }
    await expect(kv.rowSparsePull('e', filled(2, 0), [0])).rejects.toThrow('6 elements');
    await expect(kv.init('f', filled(6, 1), { shape: [4, 2] })).rejects.toThrow('[4, 2]');
  });
});

describe('order', () => {
  it('of different keys goes by priority', async () => {
    const kv = await open('local');
    // As many keys at once as there are threads may end in any order: each takes the most urgent key that is left.
    const width = native().numThreads();
    const count = 8 * width;
    // The most urgent key is rank 0; they are issued in an order that is neither that nor its reverse.
    const ranks = Array.from({ length: count }, (_, i) => (i * (4 * width + 1) + 3) % count);
    await kv.init(
      ['gate', ...ranks.map(String)],
      Array.from({ length: count + 1 }, () => filled(1000, 0)),
    );
    // The updater runs on this thread, once this test waits; the barrier behind it holds back what follows until then.
    const opening = [kv.setUpdater(() => undefined), kv.push('gate', filled(1000, 0))];
    opening.push(kv.setUpdater(null), kv.barrier());
    const ended: number[] = [];
    const pushes = ranks.map(async (rank) => {
      await kv.push(String(rank), filled(1000, rank), { priority: -rank });
      ended.push(rank);
    });
    await Promise.all([...opening, ...pushes]);
    expect(ended).toHaveLength(count);
    expect(ended.filter((rank, position) => rank >= position + width)).toEqual([]);
  });

  it('a failure between calls that share an array ends its own call alone', async () => {
    const kv = await open('local');
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

  it.each([[1.5], [2 ** 31], ['1']])('refuses the priority %j', async (priority) => {
    const kv = await open('local');
    await kv.init('a', filled(1, 0));
    await expect(
      kv.push('a', filled(1, 0), { priority: priority as number }),
    ).rejects.toMatchObject({ code: expect.stringMatching(/OUT_OF_RANGE|ARG_TYPE/) as string });
  });
});

describe('close', () => {
  it('waits for what is pending, and is final', async () => {
    const kv = await KVStore.create('local');
    await kv.init(['a', 'b'], [filled(1 << 20, 0), filled(1 << 20, 2)]);
    const [out, both] = [filled(1 << 20, 0), filled(1 << 20, 0)];
    const value = filled(1 << 20, 4);
    const pending = [kv.push('a', value), kv.pull('a', out)];
    // The second has not begun.
    pending.push(kv.pull('a', both), kv.pull('b', both));
    await kv.close();
    expect([out[7], both[7]]).toEqual([4, 2]);
    await Promise.all(pending);
    await kv.close();
    for (const call of [
      kv.push('a', value),
      kv.init('b', value),
      kv.barrier(),
      kv.rowSparsePull('a', out, []),
      kv.setOptimizer(null),
    ]) {
      await expect(call).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    }
  });

  it('is what await using does', async () => {
    let kept: KVStore;
    {
      await using kv = await KVStore.create('local');
      await kv.init('a', filled(1, 0));
      kept = kv;
    }
    await expect(kept.pull('a', filled(1, 0))).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });
});

describe('updater', () => {
  it('keeps nothing: its arrays are copies', async () => {
    const kv = await open('local');
    await kv.init('a', filled(2, 1));
    const kept: { fill(value: number): unknown }[] = [];
    await kv.setUpdater((_, received, stored) => {
      kept.push(received as Float32Array, stored as Float32Array);
    });
    await kv.push('a', filled(2, 2));
    for (const array of kept) array.fill(-1);
    await delay(0);
    const out = filled(2, 0);
    await kv.pull('a', out);
    expect(out).toEqual(filled(2, 1));
  });
});
