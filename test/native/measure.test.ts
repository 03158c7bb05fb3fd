import { describe, expect, it } from 'vitest';

import { native } from '../../lib/native/load.js';
import { nativeCollectives } from '../../lib/collectives.js';
import {
  nativeCombine,
  nativeMemoryLoops,
  type NativeTimingOptions,
} from '../../lib/native/measure.js';

const float32 = 8;
const int8 = 0;
const sum = 0;

const timing: NativeTimingOptions = {
  collective: 'allReduce',
  count: 1000,
  dtype: float32,
  op: sum,
  root: 0,
  inPlace: false,
  shared: false,
  warmup: 1,
  samples: 3,
  batch: 2,
  combine: nativeCombine.max,
  verify: true,
  seed: 7,
  timeoutMs: -1,
};

describe('what the machine offers', () => {
  it('names a SIMD level and counts at least one thread', () => {
    expect(['scalar', 'neon', 'avx2', 'avx512']).toContain(native().simdLevel());
    expect(native().numThreads()).toBeGreaterThanOrEqual(1);
  });
});

describe('memoryBandwidth', () => {
  const options = { bytes: 65536, arrays: 3, threads: 2, warmup: 1, samples: 4, repeats: 2 };

  it.each([
    ['copy', 2],
    ['triad', 3],
    ['reduceInPlace', 6],
    ['reduceOutOfPlace', 6],
    ['reduceToOne', 4],
  ] as const)('%s moves %i arrays a pass', async (loop, passes) => {
    const result = await native().memoryBandwidth({ ...options, loop: nativeMemoryLoops[loop] });
    expect(result.bytes).toBe(passes * 65536);
    expect(result.seconds).toHaveLength(4);
    for (const seconds of result.seconds) expect(seconds).toBeGreaterThan(0);
  });

  it('rejects bad options', () => {
    const bad = { ...options, loop: nativeMemoryLoops.copy };
    expect(() => native().memoryBandwidth({ ...bad, threads: 0 })).toThrow(/threads/);
    expect(() => native().memoryBandwidth({ ...bad, bytes: -1 })).toThrow(/bytes/);
    expect(() => native().memoryBandwidth({ ...bad, loop: 5 })).toThrow(/loop/);
  });

  it('leaves its memory to the next call where it says so, which then frees it', async () => {
    const loop = { ...options, bytes: 2 ** 27, loop: nativeMemoryLoops.copy };
    const resident = async (keep: boolean): Promise<number> => {
      await native().memoryBandwidth({ ...loop, keep });
      return process.memoryUsage.rss();
    };
    const before = await resident(false);
    const kept = await resident(true);
    expect(kept - before).toBeGreaterThan(loop.bytes);
    // Another 256 MiB beside them would show.
    expect(Math.abs((await resident(true)) - kept)).toBeLessThan(loop.bytes);
    expect(kept - (await resident(false))).toBeGreaterThan(loop.bytes);
  });

  it('reports memory that is not to be had', async () => {
    const huge = { ...options, bytes: 2 ** 52, loop: nativeMemoryLoops.copy };
    await expect(native().memoryBandwidth(huge)).rejects.toMatchObject({
      code: 'ERR_OUT_OF_MEMORY',
    });
  });
});

describe('timeCollective', () => {
  const names = [...nativeCollectives.map(({ name }) => name), 'sendReceive'] as const;

  it.each(names.filter((name) => name !== 'sendReceive'))(
    'times %s of four ranks',
    async (name) => {
      const comm = native().NativeCommunicator.local(4);
      const result = await native().timeCollective(comm, {
        ...timing,
        collective: name,
      });
      expect(result).toMatchObject({ wrongBefore: 0, wrongAfter: 0 });
      expect(result.seconds).toHaveLength(3);
      await comm.close();
    },
  );

  it('runs in place, on shared arrays', async () => {
    const comm = native().NativeCommunicator.local(2);
    const result = await native().timeCollective(comm, { ...timing, inPlace: true, shared: true });
    expect(result).toMatchObject({ wrongBefore: 0, wrongAfter: 0 });
    expect(result.totalSeconds).toBeGreaterThan(0);
    await comm.close();
  });

  it('rejects what has no in-place form, and goes on', async () => {
    const comm = native().NativeCommunicator.local(2);
    const bad: NativeTimingOptions = { ...timing, collective: 'allToAll', inPlace: true };
    await expect(native().timeCollective(comm, bad)).rejects.toThrow(/allToAll.*in-place/);
    await expect(native().timeCollective(comm, timing)).resolves.toMatchObject({ wrongAfter: 0 });
    await comm.close();
  });

  it('refuses anything but an open communicator', async () => {
    expect(() => native().timeCollective({} as never, timing)).toThrow(TypeError);
    const comm = native().NativeCommunicator.local(2);
    await comm.close();
    expect(() => native().timeCollective(comm, timing)).toThrow(/closed/);
  });
});

describe('patterns', () => {
  it('refuse an array of another type', () => {
    const pattern = { dtype: int8, op: sum, size: 1, seed: 1 };
    expect(() => native().fillPattern(new Float32Array(4), pattern, 0, 0)).toThrow(/Int8Array/);
  });
});
