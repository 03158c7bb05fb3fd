// The limit that stands beside every bandwidth: what the memory of this machine can copy, measured in the same run.
import { native } from '../native.js';
import { nativeMemoryLoops } from '../native/measure.js';

const smallestArray = 64 * 2 ** 20;
const largestArray = 512 * 2 ** 20;
// Four times the cache: less than a quarter of an array can be left from the pass before.
const cacheMultiple = 4;
const warmup = 2;
const samples = 12;

/** What the machine's memory can do with plain copies. */
export interface MemoryLimit {
  /** Bytes read plus bytes written in a second, by a copy on `threads` threads. */
  readonly copyBytesPerSecond: number;
  readonly threads: number;
}

/**
 * Measures the copy bandwidth with as many threads as the collectives use: the best of twelve passes over arrays that
 * no cache holds, since a limit is what the machine can do when nothing disturbs it. Takes about a third of a second.
 *
 * @param lastLevelCacheBytes null when the kernel does not tell
 */
export async function measureMemoryLimit(lastLevelCacheBytes: number | null): Promise<MemoryLimit> {
  const addon = native();
  const threads = addon.numThreads();
  const beyondCache = (lastLevelCacheBytes ?? 0) * cacheMultiple;
  const { seconds, bytes } = await addon.memoryBandwidth({
    loop: nativeMemoryLoops.copy,
    bytes: Math.min(Math.max(smallestArray, beyondCache), largestArray),
    arrays: 1,
    threads,
    warmup,
    samples,
    repeats: 1,
  });
  return { copyBytesPerSecond: bytes / Math.min(...seconds), threads };
}
