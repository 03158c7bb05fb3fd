// Arrays of which only some rows are there: MXNet's row_sparse.
import { argumentError } from '../errors.js';
import { dtypeNumber } from '../tensor/any-array.js';
import type { NumericArray } from '../tensor/dtype.js';
import { assertFixedLength } from '../tensor/memory.js';
import { optionNames, optionsObject } from '../checks.js';
import { rowLengthOf } from '../tensor/shape.js';
import { readRowNumbers } from './rows.js';
import type { RowIds } from './rows.js';

/** What a {@link RowSparse} is made of. */
export interface RowSparseParts<A extends NumericArray = NumericArray> {
  /** Row numbers, in any order; rows that come several times add up. */
  readonly indices: RowIds;
  /** The rows, one after another in the order of `indices`. */
  readonly data: A;
  /** Of the whole array: rows first. */
  readonly shape: readonly number[];
}

const partNames = optionNames<RowSparseParts>({ indices: true, data: true, shape: true });

let fill: <A extends NumericArray>(of: RowSparse<A>, indices: Float64Array, data: A) => void;

/**
 * An array of which only some rows are there; the others are 0. The gradient of an embedding is one: a batch touches
 * few of its rows, and only these are pushed.
 *
 * @example
 * ```ts
 * const gradient = new RowSparse({ indices: [7, 2], data: new Float32Array(2 * 3), shape: [1000, 3] });
 * ```
 */
export class RowSparse<A extends NumericArray = NumericArray> {
  /** Of the whole array: rows first. */
  readonly shape: readonly number[];
  /** Elements of a row. */
  readonly rowLength: number;
  /** Elements of the whole array. */
  readonly length: number;
  #indices: Float64Array;
  #data: A;

  static {
    fill = (of, indices, data) => {
      of.#indices = indices;
      of.#data = data;
    };
  }

  /**
   * @throws TypeError for what is not a shape, and for data that are not `indices.length` rows; RangeError for a row
   *   that the shape does not have.
   */
  constructor(parts: RowSparseParts<A>) {
    const { indices, data, shape } = optionsObject(parts, partNames, 'new RowSparse');
    const count = product(shape);
    this.rowLength = rowLengthOf(shape, count);
    this.shape = Object.freeze([...shape]);
    this.length = count;
    const height = count / this.rowLength;
    this.#indices = readRowNumbers(indices, height, 'indices', `the shape has ${height} rows`);
    if (!ArrayBuffer.isView(data) || data instanceof DataView) {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'data', 'a TypedArray', data);
    }
    assertFixedLength(data, 'data');
    const expected = this.#indices.length * this.rowLength;
    if (data.length !== expected) {
      throw argumentError(
        'ERR_INVALID_ARG_VALUE',
        'data',
        `${expected} elements: ${this.#indices.length} rows of ${this.rowLength}`,
        { text: `${data.length}` },
      );
    }
    this.#data = data;
  }

  /** Row numbers, a copy of what was given. */
  get indices(): Float64Array {
    return this.#indices;
  }

  /** The rows, not copied. */
  get data(): A {
    return this.#data;
  }

  /**
   * The whole array.
   *
   * @throws TypeError for a row that comes twice in an array of halves, which JavaScript cannot add.
   */
  toDense(): A {
    const dense = emptyLike(this.#data, this.length);
    const [to, from] = [copyable(dense), copyable(this.#data)];
    const seen = new Set<number>();
    this.#indices.forEach((row, at) => {
      const rows = from.subarray(at * this.rowLength, (at + 1) * this.rowLength);
      const first = row * this.rowLength;
      if (!seen.has(row)) {
        to.set(rows, first);
      } else if (dense instanceof Uint16Array) {
        throw argumentError('ERR_INVALID_ARG_VALUE', 'indices', 'each row once', row);
      } else {
        for (const [i, value] of rows.entries()) to[first + i]! += value;
      }
      seen.add(row);
    });
    return dense;
  }
}

/** For copies between arrays of one kind, which all can do alike. */
export function copyable(array: NumericArray): Float64Array {
  return array as Float64Array;
}

/** A new array of the same kind. */
export function emptyLike<A extends NumericArray>(model: A, length: number): A {
  return new (model.constructor as new (length: number) => A)(length);
}

/** What was pulled takes the place of what was there. */
export function refill<A extends NumericArray>(
  into: RowSparse<A>,
  indices: Float64Array,
  data: A,
): void {
  fill(into, indices, data);
}

/** Whether a key's argument is of rows: one, or a list that begins with one. */
export function isRowSparse(given: unknown): given is RowSparse | readonly RowSparse[] {
  return given instanceof RowSparse || (Array.isArray(given) && given[0] instanceof RowSparse);
}

/** What a store's key needs a row-sparse array to fit. */
interface FittingKey {
  readonly key: unknown;
  readonly count: number;
  readonly rowLength: number;
  readonly dtype: string | undefined;
}

/**
 * One key's arrays.
 *
 * @throws TypeError for anything else, for another shape than the key's, and for more than one a device.
 */
export function rowSparsesOf(
  given: unknown,
  name: string,
  { key, count, rowLength, dtype }: FittingKey,
  limit: number,
): RowSparse[] {
  const list: readonly unknown[] = Array.isArray(given) ? (given as unknown[]) : [given];
  if (list.length === 0 || list.length > limit) {
    const expected = `a RowSparse or a list of them, at most ${limit} (one for each device)`;
    throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, given);
  }
  return Array.from(list, (one): RowSparse => {
    if (!(one instanceof RowSparse)) {
      throw argumentError('ERR_INVALID_ARG_TYPE', name, 'all RowSparse, or none', one);
    }
    dtypeNumber(one.data, dtype, name);
    if (one.length !== count || one.rowLength !== rowLength) {
      throw argumentError(
        'ERR_INVALID_ARG_VALUE',
        name,
        `${count / rowLength} rows of ${rowLength} (what key ${String(key)} was initialised with)`,
        { text: `the shape [${one.shape.join(', ')}]` },
      );
    }
    return one as RowSparse;
  });
}

function product(shape: unknown): number {
  if (!Array.isArray(shape) || shape.length === 0) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'shape', 'a list of at least one number', shape);
  }
  return (shape as readonly number[]).reduce((all, size) => all * size, 1);
}
