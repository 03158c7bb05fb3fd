// Checks of an array's memory: resizable buffers, and overlaps with other arrays.
import { constants } from 'node:buffer';

import { argumentError } from '../errors.js';
import { integer } from '../checks.js';

/** The largest native memory that Node wraps as an array; it frees larger ones twice. */
const maxShownBytes = constants.MAX_LENGTH;

/**
 * Validates a number of elements to allocate natively.
 *
 * @throws RangeError beyond the size of an array in Node (4 GiB with Node 20).
 */
export function shownElements(count: unknown, name: string, bytesEach: number): number {
  return integer(count, name, 0, Math.floor(maxShownBytes / bytesEach));
}

/** The bytes of any array. */
export interface Region {
  /** Arrays overlap only with the same object. */
  readonly buffer: object;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** @throws TypeError if the array's buffer can be resized during an operation */
export function assertFixedLength(array: Region, name: string): void {
  const buffer = array.buffer as { readonly resizable?: boolean; readonly growable?: boolean };
  if (buffer.resizable === true || buffer.growable === true) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'an array over memory of fixed length', {
      text: 'one over a resizable ArrayBuffer',
    });
  }
}

/** Whether the memory of a host array was transferred. */
export function isDetached(array: ArrayBufferView): boolean {
  const { buffer } = array;
  if (array.byteLength > 0 || buffer.byteLength > 0 || buffer instanceof SharedArrayBuffer) {
    return false;
  }
  try {
    // Node 20 has no such property; an empty view of any other buffer works.
    return new Uint8Array(buffer).length !== 0;
  } catch {
    return true;
  }
}

/** Whether two arrays share bytes. */
export function overlap(a: Region, b: Region): boolean {
  return (
    a.buffer === b.buffer &&
    a.byteOffset < b.byteOffset + b.byteLength &&
    b.byteOffset < a.byteOffset + a.byteLength
  );
}

export function overlapError(name: string, other: string): Error {
  return argumentError('ERR_BUFFER_OVERLAP', name, `memory apart from ${other}`, {
    text: `an array that overlaps ${other}`,
  });
}
