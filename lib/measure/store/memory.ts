// Memory for the arrays of a store's run: many in one buffer, mostly on huge pages, touched by all threads.
import { native } from '../../native/load.js';
import { arrayOver, elementBytes, parseDType } from '../../tensor/dtype.js';
import type { GradientArray, GradientType } from './gradients.js';

// Systems grant a reservation of this size at once; larger arrays have their own buffer.
const bufferBytes = 2 ** 30;
// malloc aligns every large array within its cache line, which affects stores past the caches.
const lineBytes = 64;

/** Zeroed arrays of these lengths. */
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
 * The same by array and device: arrays[array][device]. A device's arrays are adjacent, as in its own memory. Placing
 * the arrays of one key a few MiB apart made a pass over them a sixth slower (EPYC Zen 5).
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
