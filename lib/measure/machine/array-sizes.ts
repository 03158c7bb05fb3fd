import { mebibyte } from '../../results/units.js';

const smallestArray = 64 * mebibyte;
const largestArray = 512 * mebibyte;
// Four times the cache: less than a quarter of an array can be left from the pass before.
const cacheMultiple = 4;

/** Bytes of an array that no cache holds. */
export function beyondCaches(lastLevelCacheBytes: number | null): number {
  const beyondCache = (lastLevelCacheBytes ?? 0) * cacheMultiple;
  return Math.min(Math.max(smallestArray, beyondCache), largestArray);
}
