// What the memory under an array may not be: resizable, or the same as another array's.
import { constants } from 'node:buffer';

import { argumentError } from '../errors.js';
import { integer } from '../checks.js';

/** The most bytes of native memory that Node shows as an array; it frees what is larger twice. */
const maxShownBytes = constants.MAX_LENGTH;

/**
 * A number of elements whose memory native code makes and JavaScript shows.
 *
 * @throws RangeError for more than Node can show as one array (4 GiB with Node 20).
 */
export function shownElements(count: unknown, name: string, bytesEach: number): number {
  return integer(count, name, 0, Math.floor(maxShownBytes / bytesEach));
}

/** What arrays of any kind say of their bytes. */
export interface Region {
  /** Arrays share bytes only if this is the same object. */
  readonly buffer: object;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/**
 * @throws TypeError when the array's buffer can change its length under a running operation.
 */
export function assertFixedLength(array: Region, name: string): void {
  const buffer = array.buffer as { readonly resizable?: boolean; readonly growable?: boolean };
  if (buffer.resizable === true || buffer.growable === true) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'an array over memory of fixed length', {
      text: 'one over a resizable ArrayBuffer',
    });
  }
}

/** Whether the memory of an array of the host was transferred to somebody else. */
export function isDetached(array: ArrayBufferView): boolean {
  const { buffer } = array;
  if (array.byteLength > 0 || buffer.byteLength > 0 || buffer instanceof SharedArrayBuffer) {
    return false;
  }
  try {
    // Node 20 has no property that tells; a view of no bytes can be had of any other buffer.
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

/** The error for arrays that share bytes and must not. */
export function overlapError(name: string, other: string): Error {
  return argumentError('ERR_BUFFER_OVERLAP', name, `memory apart from ${other}`, {
    text: `an array that overlaps ${other}`,
  });
}
