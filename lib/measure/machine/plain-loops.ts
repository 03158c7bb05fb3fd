// The bare loops that no engine beats: copies and sums over arrays of a size.
import type { MemoryAccess as Access } from '../../results/bandwidth.js';
import { mebibyte } from '../../results/units.js';
import { native } from '../../native/load.js';
import { nativeMemoryLoops } from '../../native/measure.js';

interface Loop {
  readonly loop: number;
  readonly arrays: number;
  /** Bytes read plus written, in units of one array's. */
  readonly passes: number;
}

const { copy, reduceInPlace, reduceOutOfPlace, reduceToOne } = nativeMemoryLoops;
const copies: readonly Loop[] = [
  { loop: copy, arrays: 1, passes: 2 },
  { loop: reduceOutOfPlace, arrays: 1, passes: 2 },
  { loop: reduceOutOfPlace, arrays: 2, passes: 4 },
  { loop: reduceOutOfPlace, arrays: 4, passes: 8 },
];
/** What copies may do all may: a limit is the best that is known. */
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

/** A size's loop runs so long that reading the clock does not count. */
const bytesOfSample = 8 * mebibyte;
const mostRepeats = 500;
/** The best of many: on a machine with other load few passes are undisturbed. */
const bytesOfAllSamples = 512 * mebibyte;
const fewestSamples = 4;
const mostSamples = 20;
const line = 64;
// A core that has its caches to itself may beat two that share one, as long as its arrays are few lines.
const fewThreadsBytes = 128 * 2 ** 10;

/**
 * The best of the plain loops that move about these bytes a pass. The operating system gives memory at the first touch,
 * which the loops make before they are timed.
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
