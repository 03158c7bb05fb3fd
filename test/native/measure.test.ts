import { describe, expect, it } from 'vitest';

import { native } from '../../lib/native/load.js';
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
});

describe('timeCollective', () => {
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
