import { mebibyte } from '../../results/units.js';

const smallestArray = 64 * mebibyte;
const largestArray = 512 * mebibyte;
// Four times the cache, so that it holds less than a quarter of an array.
const cacheMultiple = 4;

/** The size of an array beyond all caches. */
export function beyondCaches(lastLevelCacheBytes: number | null): number {
  const beyondCache = (lastLevelCacheBytes ?? 0) * cacheMultiple;
  return Math.min(Math.max(smallestArray, beyondCache), largestArray);
}
