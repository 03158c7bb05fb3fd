// The gradients that `measure` pushes: the same for the same seed, on every machine and worker.
import { allocate, parseDType } from '../../tensor/dtype.js';
import { halfTable, toHalf } from '../../tensor/half.js';

/** Element types of gradients. */
export const gradientTypes = ['float32', 'float64', 'float16', 'bfloat16'] as const;
/** One of {@link gradientTypes}. */
export type GradientType = (typeof gradientTypes)[number];
export type GradientArray = Float32Array | Float64Array | Uint16Array;

const randomBits = 32;
// Weyl sequence by the golden ratio, mixed by two multiplications: passes what gradients need, and takes 2 ns.
const weylStep = 0x9e3779b9;
const mixers = [0x21f0aaad, 0x735a2d97] as const;

/** Starts far apart for neighbouring (seed, array, device). */
function startOf(seed: number, array: number, device: number): number {
  let state = seed | 0;
  for (const part of [array, device]) {
    state = Math.imul(state ^ (state >>> 16) ^ Math.imul(part + 1, weylStep), mixers[0]);
  }
  return state;
}

/**
 * Uniform numbers from [-1, 1), one stream for each seed, array and device.
 *
 * @param count number of elements
 */
export function drawGradient(
  dtype: GradientType,
  count: number,
  seed: number,
  array: number,
  device: number,
): GradientArray {
  const out = allocate(parseDType(dtype), count) as GradientArray;
  const half = dtype === 'float16' || dtype === 'bfloat16' ? dtype : undefined;
  const scale = 2 ** (1 - randomBits);
  let state = startOf(seed, array, device);
  for (let i = 0; i < count; i += 1) {
    state = (state + weylStep) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), mixers[0]);
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixers[1]);
    const value = (mixed ^ (mixed >>> 15)) * scale;
    out[i] = half === undefined ? value : toHalf(half, value);
  }
  return out;
}

/** The elements as numbers: the array itself, or, of half types, `scratch` filled with them. */
export function asNumbers(
  array: GradientArray,
  dtype: GradientType,
  scratch: Float32Array,
): Float32Array | Float64Array {
  if (!(array instanceof Uint16Array)) return array;
  const table = halfTable(dtype === 'bfloat16' ? 'bfloat16' : 'float16');
  for (let i = 0; i < array.length; i += 1) scratch[i] = table[array[i] ?? 0] ?? 0;
  return scratch.subarray(0, array.length);
}
