// Arrays with only some rows: MXNet's row_sparse.
import { argumentError } from '../errors.js';
import { dtypeNumber } from '../tensor/any-array.js';
import type { NumericArray } from '../tensor/dtype.js';
import { assertFixedLength } from '../tensor/memory.js';
import { optionNames, optionsObject } from '../checks.js';
import { rowLengthOf } from '../tensor/shape.js';
import { readRowNumbers } from './rows.js';
import type { RowIds } from './rows.js';

/** The parts of a {@link RowSparse}. */
export interface RowSparseParts<A extends NumericArray = NumericArray> {
  /** Row numbers in any order; repeated rows add up. */
  readonly indices: RowIds;
  /** The rows in the order of `indices`, concatenated. */
  readonly data: A;
  /** The shape of the whole array: rows first. */
  readonly shape: readonly number[];
}

const partNames = optionNames<RowSparseParts>({ indices: true, data: true, shape: true });

let fill: <A extends NumericArray>(of: RowSparse<A>, indices: Float64Array, data: A) => void;

/**
 * An array with only some rows; the others are 0. For example the gradient of an embedding: a batch touches few rows,
 * and only these are pushed.
 *
 * @example
 * ```ts
 * const gradient = new RowSparse({ indices: [7, 2], data: new Float32Array(2 * 3), shape: [1000, 3] });
 * ```
 */
export class RowSparse<A extends NumericArray = NumericArray> {
  /** The shape of the whole array: rows first. */
  readonly shape: readonly number[];
  /** Elements per row. */
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
   * @throws TypeError for an invalid shape, and for data that are not `indices.length` rows; RangeError for a row
   *   outside the shape.
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

  /** A copy of the row numbers. */
  get indices(): Float64Array {
    return this.#indices;
  }

  /** The rows, not a copy. */
  get data(): A {
    return this.#data;
  }

  /**
   * The whole array.
   *
   * @throws TypeError for a repeated row of float16 or bfloat16, which JavaScript cannot add.
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

/** Lets arrays of one type be copied without knowing the type. */
export function copyable(array: NumericArray): Float64Array {
  return array as Float64Array;
}

export function emptyLike<A extends NumericArray>(model: A, length: number): A {
  return new (model.constructor as new (length: number) => A)(length);
}

/** Replaces the rows by the pulled ones. */
export function refill<A extends NumericArray>(
  into: RowSparse<A>,
  indices: Float64Array,
  data: A,
): void {
  fill(into, indices, data);
}

/** Whether a key's argument is a RowSparse array or a list of them. */
export function isRowSparse(given: unknown): given is RowSparse | readonly RowSparse[] {
  return given instanceof RowSparse || (Array.isArray(given) && given[0] instanceof RowSparse);
}

/** The facts of a key that a row-sparse array must match. */
interface FittingKey {
  readonly key: unknown;
  readonly count: number;
  readonly rowLength: number;
  readonly dtype: string | undefined;
}

/**
 * Validates one key's arrays.
 *
 * @throws TypeError for other values, a different shape than the key's, and more than one per device.
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
