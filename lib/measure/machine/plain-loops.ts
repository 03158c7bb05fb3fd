// The plain loops that bound every engine: copies and sums over arrays of a size.
import type { MemoryAccess as Access } from '../../results/bandwidth.js';
import { mebibyte } from '../../results/units.js';
import { native } from '../../native/load.js';
import { nativeMemoryLoops } from '../../native/measure.js';

interface Loop {
  readonly loop: number;
  readonly arrays: number;
  /** Bytes read plus written, in array sizes. */
  readonly passes: number;
}

const { copy, reduceInPlace, reduceOutOfPlace, reduceToOne } = nativeMemoryLoops;
const copies: readonly Loop[] = [
  { loop: copy, arrays: 1, passes: 2 },
  { loop: reduceOutOfPlace, arrays: 1, passes: 2 },
  { loop: reduceOutOfPlace, arrays: 2, passes: 4 },
  { loop: reduceOutOfPlace, arrays: 4, passes: 8 },
];
/** Every access may use the copies' loops: a limit is the best known rate. */
const loops: Readonly<Record<Access, readonly Loop[]>> = {
  copy: copies,
  sum: [
    ...copies,
    { loop: reduceToOne, arrays: 2, passes: 3 },
    { loop: reduceToOne, arrays: 4, passes: 5 },
  ],
  rewrite: [
    ...copies,
    { loop: reduceInPlace, arrays: 2, passes: 4 },
    { loop: reduceInPlace, arrays: 4, passes: 8 },
  ],
};

/** Long enough that reading the clock does not count. */
const bytesOfSample = 8 * mebibyte;
const mostRepeats = 500;
/** The best of many: under other load few passes are undisturbed. */
const bytesOfAllSamples = 512 * mebibyte;
const fewestSamples = 4;
const mostSamples = 20;
const line = 64;
// For a few cache lines one core alone may beat two that share a cache.
const fewThreadsBytes = 128 * 2 ** 10;

/**
 * The best of the plain loops that move about these bytes per pass. The loops touch their memory before they are timed,
 * because the system allocates it at the first touch.
 */
export async function measureLoop(
  bytes: number,
  access: Access,
  hugePages = false,
): Promise<number> {
  const addon = native();
  const all = addon.numThreads();
  const widths = bytes < fewThreadsBytes && all > 1 ? [1, all] : [all];
  const last = loops[access].at(-1);
  let best = 0;
  for (const one of loops[access]) {
    const { loop, arrays, passes } = one;
    for (const threads of widths) {
      const timing = await addon.memoryBandwidth({
        loop,
        bytes: Math.max(Math.ceil(bytes / passes), line * threads),
        arrays,
        threads,
        warmup: 2,
        samples: Math.min(
          Math.max(Math.floor(bytesOfAllSamples / bytes), fewestSamples),
          mostSamples,
        ),
        repeats: Math.min(Math.max(Math.floor(bytesOfSample / bytes), 1), mostRepeats),
        hugePages,
        keep: one !== last || threads !== all,
      });
      best = Math.max(best, timing.bytes / Math.min(...timing.seconds));
    }
  }
  return best;
}
