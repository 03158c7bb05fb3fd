// The limit that stands beside every bandwidth: what the memory of this machine can copy, measured in the same run.
import { native } from '../../native/load.js';
import { nativeMemoryLoops } from '../../native/measure.js';
import { beyondCaches } from './array-sizes.js';

const warmup = 1;
const samples = 6;

// Plain loops that write as much as they read. Which is fastest depends on the machine: the C library's copy was at 40,
// our own copy past the caches at 53 and four streams side by side at 79 GB/s on 2 cores of an EPYC Zen 4.
const loops = [
  { loop: nativeMemoryLoops.copy, arrays: 1 },
  { loop: nativeMemoryLoops.reduceOutOfPlace, arrays: 1 },
  { loop: nativeMemoryLoops.reduceOutOfPlace, arrays: 4 },
] as const;

/** What the machine's memory can do with plain copies. */
export interface MemoryLimit {
  /** Bytes read plus bytes written in a second, by a copy on `threads` threads. */
  readonly copyBytesPerSecond: number;
  readonly threads: number;
  /** The loop that was fastest: seconds of each pass, and bytes read plus written by one. */
  readonly pass: { readonly seconds: readonly number[]; readonly bytes: number };
}

/**
 * Measures the copy bandwidth with as many threads as the collectives use: the best pass of the fastest of three plain
 * loops over arrays that no cache holds, since a limit is what the machine can do when nothing disturbs it. Takes about
 * half a second.
 *
 * @param lastLevelCacheBytes null when the kernel does not tell
 * @param hugePages as what is measured beside it lies
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
