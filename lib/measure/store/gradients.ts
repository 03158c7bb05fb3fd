// The gradients of `measure`: equal for equal seeds on every machine and worker.
import { native } from '../../native/load.js';
import { parseDType } from '../../tensor/dtype.js';
import { allocateByDevice } from './memory.js';

/** Element types of gradients. */
export const gradientTypes = ['float32', 'float64', 'float16', 'bfloat16'] as const;
/** One of {@link gradientTypes}. */
export type GradientType = (typeof gradientTypes)[number];
export type GradientArray = Float32Array | Float64Array | Uint16Array;

const goldenRatio = 0x9e3779b9;
const mixer = 0x21f0aaad;

/** The start within a stream of 2^32: far apart for adjacent (seed, array, device). */
function startOf(seed: number, array: number, device: number): number {
  let state = seed | 0;
  for (const part of [array, device]) {
    state = Math.imul(state ^ (state >>> 16) ^ Math.imul(part + 1, goldenRatio), mixer);
  }
  return state >>> 0;
}

/**
 * Uniform numbers in [-1, 1] as gradients[array][device], with a stream for each seed, array and device. Drawn by all
 * threads.
 *
 * @param lengths elements per array
 */
export function drawGradients(
  dtype: GradientType,
  lengths: readonly number[],
  devices: number,
  seed: number,
): GradientArray[][] {
  const gradients = allocateByDevice(dtype, lengths, devices);
  const starts = gradients.flatMap((arrays, array) =>
    arrays.map((_, device) => startOf(seed, array, device)),
  );
  native().drawUniform(gradients.flat(), parseDType(dtype), starts);
  return gradients;
}
