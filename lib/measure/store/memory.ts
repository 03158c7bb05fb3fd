// Memory of the arrays that one run of a store pushes from and pulls into: many in one buffer, so that most of it lies on
// huge pages, touched by all threads.
import { native } from '../../native/load.js';
import { arrayOver, elementBytes, parseDType } from '../../tensor/dtype.js';
import type { GradientArray, GradientType } from './gradients.js';

// A reservation that systems grant at once; a larger array has a buffer of its own.
const bufferBytes = 2 ** 30;
// malloc puts every large array alike in its cache lines, and stores past the caches go by that.
const lineBytes = 64;

/** Zeros, arrays of so many elements each. */
export function allocateArrays(dtype: GradientType, lengths: readonly number[]): GradientArray[] {
  const number = parseDType(dtype);
  const bytesOf = (length: number): number => length * (elementBytes[number] ?? 1);
  const arrays: GradientArray[] = [];
  for (let next = 0; next < lengths.length;) {
    const offsets: number[] = [];
    let end = 0;
    for (const length of lengths.slice(next)) {
      if (offsets.length > 0 && end + bytesOf(length) > bufferBytes) break;
      offsets.push(end);
      end += Math.ceil(bytesOf(length) / lineBytes) * lineBytes;
    }
    const buffer = new ArrayBuffer(end);
    native().touchMemory(new Uint8Array(buffer));
    for (const offset of offsets) {
      arrays.push(arrayOver(number, buffer, lengths[next] ?? 0, offset) as GradientArray);
      next += 1;
    }
  }
  return arrays;
}

/**
 * The same by array and device: arrays[array][device]. A device's arrays lie together, as in its own memory; those of one
 * array that a few MiB part, where one pass reads and writes all of them, took a sixth longer (EPYC Zen 5).
 */
export function allocateByDevice(
  dtype: GradientType,
  lengths: readonly number[],
  devices: number,
): GradientArray[][] {
  const each = Array.from({ length: devices }, () => lengths).flat();
  const arrays = allocateArrays(dtype, each);
  return lengths.map((_, array) =>
    Array.from({ length: devices }, (_, device) => arrays[device * lengths.length + array]!),
  );
}
