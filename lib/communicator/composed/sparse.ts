// All-reduce of few rows of a large table, as an all-gather of indices and rows of any number per rank.
import { argumentError } from '../../errors.js';
import { assertFixedLength } from '../../tensor/memory.js';
import {
  integer,
  milliseconds,
  notOneOf,
  optionNames,
  optionsObject,
  wellFormed,
} from '../../checks.js';
import { beginTogether, goOn, type Said } from './agreement.js';
import type { Communicator } from '../communicator.js';
import { hostRank } from './objects.js';
import type { CallOptions } from '../calls/types.js';

/** Rows of a table: row `indices[i]` is `values` from `i * rowLength` on. */
export interface SparseRows<V extends Float32Array | Float64Array | Int32Array> {
  /** Row numbers; in a sum ascending and unique. */
  readonly indices: Int32Array;
  /** The rows, concatenated. */
  readonly values: V;
}

/** Options of {@link sparseAllReduce}. */
export interface SparseOptions extends CallOptions {
  /** Elements per row, the same on all ranks; 1 when absent. */
  rowLength?: number | undefined;
  /** `'avg'` divides by the number of all ranks; `'sum'` when absent. Averages are for floats. */
  op?: 'sum' | 'avg' | undefined;
  /** The same on all ranks, such as `'grad/embedding'`: errors of all ranks show it. */
  name?: string | undefined;
}

const sparseNames = optionNames<SparseOptions>({
  rowLength: true,
  op: true,
  name: true,
  timeoutMs: true,
});

const op = 'sparseAllReduce';

/**
 * Collective: the sum of table rows. Each rank brings any rows, with repetitions or none. Every rank gets each index
 * once, ascending, with the sum of its rows in rank order. Only the given rows are sent.
 *
 * Await it before the next call of this communicator.
 *
 * @throws GradlinkError ERR_MISMATCH on every rank if names, types, row lengths or ops differ. If one rank's arguments
 *   are invalid, the others get it with that rank's error.
 */
export async function sparseAllReduce<V extends Float32Array | Float64Array | Int32Array>(
  communicator: Communicator,
  rows: SparseRows<V>,
  options?: SparseOptions,
): Promise<SparseRows<V>> {
  const { size } = hostRank(communicator);
  const [{ indices, values, rowLength, reduceOp, calls }, { counts }] = await beginTogether(
    communicator,
    op,
    options,
    () => broughtBy(rows, options),
  );
  return await goOn(communicator, op, async () => {
    const allIndices = await communicator.allGatherV(indices, { ...calls, counts });
    const allValues = await communicator.allGatherV(values as Float32Array, {
      ...calls,
      counts: counts.map((count) => count * rowLength),
    });
    const sum = added(allIndices.data, allValues.data as unknown as V, rowLength);
    if (reduceOp === 'avg') sum.values.forEach((value, i) => (sum.values[i] = value / size));
    return sum;
  });
}

/** One rank's rows, validated. */
function broughtBy<V extends Float32Array | Float64Array | Int32Array>(
  rows: SparseRows<V>,
  options: SparseOptions | undefined,
) {
  const given = optionsObject(options, sparseNames, op);
  const rowLength = integer(given.rowLength ?? 1, 'rowLength', 1, 2 ** 31 - 1);
  const { indices, values } = checkedRows(rows, rowLength);
  const reduceOp = opOf(given.op, values);
  const name = given.name === undefined ? '' : wellFormed(given.name, 'name');
  milliseconds(given.timeoutMs, 'timeoutMs', -1);
  const calls: CallOptions = given.timeoutMs === undefined ? {} : { timeoutMs: given.timeoutMs };
  const brings = `rows of ${rowLength} in a ${values.constructor.name}, ${reduceOp}`;
  const said: Said = { op, name, brings, count: indices.length };
  return [said, { indices, values, rowLength, reduceOp, calls }] as const;
}

function checkedRows<V extends Float32Array | Float64Array | Int32Array>(
  rows: SparseRows<V>,
  rowLength: number,
): SparseRows<V> {
  const { indices, values } = optionsObject<SparseRows<V>>(
    rows,
    new Set(['indices', 'values']),
    op,
  );
  if (!(indices instanceof Int32Array)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'indices', 'an Int32Array', indices);
  }
  const known = [Float32Array, Float64Array, Int32Array];
  if (!known.some((type) => (values as unknown) instanceof type)) {
    const expected = 'a Float32Array, Float64Array or Int32Array';
    throw argumentError('ERR_INVALID_ARG_TYPE', 'values', expected, values);
  }
  assertFixedLength(indices, 'indices');
  assertFixedLength(values, 'values');
  if (values.length !== indices.length * rowLength) {
    const expected = `${indices.length} rows of ${rowLength} (option rowLength)`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'values', expected, {
      text: `${values.length} elements`,
    });
  }
  const negative = indices.find((index) => index < 0);
  if (negative !== undefined) {
    throw argumentError('ERR_OUT_OF_RANGE', 'indices', 'rows from 0 on', negative);
  }
  return { indices, values };
}

function opOf(given: unknown, values: object): 'sum' | 'avg' {
  if (given !== undefined && given !== 'sum' && given !== 'avg') {
    throw notOneOf(given, 'op', ['sum', 'avg']);
  }
  if (given === 'avg' && values instanceof Int32Array) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'op', "'sum' with integers", given);
  }
  return given ?? 'sum';
}

function added<V extends Float32Array | Float64Array | Int32Array>(
  allIndices: Int32Array,
  allValues: V,
  rowLength: number,
): SparseRows<V> {
  const indices = Int32Array.from(new Set(allIndices)).sort();
  const places = new Map(Array.from(indices, (index, place) => [index, place]));
  const values = new (allValues.constructor as new (length: number) => V)(
    indices.length * rowLength,
  );
  allIndices.forEach((index, at) => {
    const to = places.get(index)! * rowLength;
    for (let i = 0; i < rowLength; ++i) values[to + i]! += allValues[at * rowLength + i]!;
  });
  return { indices, values };
}
