// Native loops over arrays, without any engine around them.
import { native, nativeMemoryLoops } from '../../dist/internal.js';

/** Samples of one loop, about `seconds` long in all. */
export async function sampleLoop({ loop, arrays = 2, seconds, ...options }) {
  const time = (more) =>
    native().memoryBandwidth({
      loop: nativeMemoryLoops[loop],
      arrays,
      repeats: 1,
      ...options,
      ...more,
    });
  const once = await time({ warmup: 1, samples: 1 });
  const samples = Math.max(5, Math.min(100, Math.round(seconds / once.seconds[0])));
  const { seconds: measured, bytes } = await time({ warmup: 2, samples });
  return { seconds: [...measured], movedBytes: bytes };
}
