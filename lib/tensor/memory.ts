// What the memory under an array may not be: resizable, or the same as another array's.
import { argumentError } from '../errors.js';

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
