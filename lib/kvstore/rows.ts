// Validates the row numbers of rowSparsePull.
import { argumentError } from '../errors.js';
import type { KeyInfo } from './keys.js';

/** Row numbers in any order, repeats allowed. */
export type RowIds =
  | readonly number[]
  | readonly bigint[]
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** Row numbers of any shape: nested lists are concatenated, as in MXNet. */
export type NestedRowIds = RowIds | readonly NestedRowIds[];

/**
 * One list of rows per output: as given, or the same list for all.
 *
 * @throws TypeError or RangeError for rows that the key does not have.
 */
export function rowsOf(given: unknown, info: KeyInfo, outputs: number): Float64Array[] {
  if (!isListOfLists(given) || (outputs === 1 && given.length !== 1)) {
    const rows = readRows(given, info);
    return Array.from({ length: outputs }, () => rows);
  }
  if (given.length !== outputs) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'rowIds',
      `one list of rows, or one for each of the ${outputs} outputs`,
      given,
    );
  }
  return Array.from(given, (rows) => readRows(rows, info));
}

function isListOfLists(given: unknown): given is readonly unknown[] {
  return (
    Array.isArray(given) && given.length > 0 && given.every((item) => typeof item === 'object')
  );
}

function readRows(given: unknown, info: KeyInfo): Float64Array {
  const height = info.count / info.rowLength;
  const why = `key ${String(info.key)} has ${height} rows of ${info.rowLength}`;
  return readRowNumbers(given, height, 'rowIds', why);
}

/** @throws TypeError or RangeError unless it is a list, however nested, of numbers from 0 to height - 1 */
export function readRowNumbers(
  given: unknown,
  height: number,
  name: string,
  why: string,
): Float64Array {
  const isArray = Array.isArray(given) || (ArrayBuffer.isView(given) && 'length' in given);
  if (!isArray) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an array of row numbers', given);
  }
  const flat =
    Array.isArray(given) && given.some((item) => typeof item === 'object')
      ? flattened(given)
      : given;
  const asNumber = (row: unknown): number =>
    typeof row === 'number' || typeof row === 'bigint' ? Number(row) : NaN;
  const rows = Float64Array.from(flat as ArrayLike<unknown>, asNumber);
  for (const row of rows) {
    if (!Number.isInteger(row) || row < 0 || row >= height) {
      throw argumentError('ERR_OUT_OF_RANGE', name, `rows from 0 to ${height - 1} (${why})`, row);
    }
  }
  return rows;
}

function flattened(given: readonly unknown[]): unknown[] {
  return given.flatMap((item): unknown[] => {
    if (ArrayBuffer.isView(item) && 'length' in item) return Array.from(item as never);
    return Array.isArray(item) ? flattened(item) : [item];
  });
}

/** Sorted and unique. */
export function sortedOnce(rows: Float64Array): Float64Array {
  return Float64Array.from(new Set(rows)).sort();
}
