// The limit beside every bandwidth: this machine's copy bandwidth, measured in the same run.
import { native } from '../../native/load.js';
import { nativeMemoryLoops } from '../../native/measure.js';
import { beyondCaches } from './array-sizes.js';

const warmup = 1;
const samples = 6;

// Plain loops that write as much as they read. The fastest one depends on the machine: on 2 cores of an EPYC Zen 4 the
// C library's copy reached 40, our copy past the caches 53 and four parallel streams 79 GB/s.
const loops = [
  { loop: nativeMemoryLoops.copy, arrays: 1 },
  { loop: nativeMemoryLoops.reduceOutOfPlace, arrays: 1 },
  { loop: nativeMemoryLoops.reduceOutOfPlace, arrays: 4 },
] as const;

/** The memory's bandwidth with plain copies. */
export interface MemoryLimit {
  /** Bytes read plus bytes written per second, by a copy on `threads` threads. */
  readonly copyBytesPerSecond: number;
  readonly threads: number;
  /** The fastest loop: seconds of each pass, and bytes read plus written per pass. */
  readonly pass: { readonly seconds: readonly number[]; readonly bytes: number };
}

/**
 * Measures the copy bandwidth with the collectives' number of threads: the best pass of three plain loops over arrays
 * beyond all caches, because a limit is the undisturbed rate. Takes about half a second.
 *
 * @param lastLevelCacheBytes null if unknown
 * @param hugePages whether the measured arrays are on huge pages
 */
export async function measureMemoryLimit(
  lastLevelCacheBytes: number | null,
  hugePages = false,
): Promise<MemoryLimit> {
  const addon = native();
  const threads = addon.numThreads();
  const bytes = beyondCaches(lastLevelCacheBytes);
  let copyBytesPerSecond = 0;
  let pass: MemoryLimit['pass'] = { seconds: [], bytes: 0 };
  for (const [place, { loop, arrays }] of loops.entries()) {
    const timing = await addon.memoryBandwidth({
      loop,
      bytes: Math.ceil(bytes / arrays),
      arrays,
      threads,
      warmup,
      samples,
      repeats: 1,
      hugePages,
      keep: place < loops.length - 1,
    });
    const best = timing.bytes / Math.min(...timing.seconds);
    if (best <= copyBytesPerSecond) continue;
    copyBytesPerSecond = best;
    pass = { seconds: [...timing.seconds], bytes: timing.bytes };
  }
  return { copyBytesPerSecond, threads, pass };
}
