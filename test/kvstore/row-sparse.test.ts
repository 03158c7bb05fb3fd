// MXNet's row_sparse cases (test_kvstore.py: row_sparse_pull, sparse_aggregator; test_optimizer.py: lazy updates), exact.
import { afterEach, describe, expect, it, vi } from 'vitest';

import type { KVStore } from '../../lib/kvstore/kvstore.js';
import { RowSparse } from '../../lib/kvstore/row-sparse.js';
import { errorWith } from '../support/errors.js';
import { closeAll, filled, open } from './support.js';

afterEach(closeAll);

const shape = [6, 4] as const;
const [height, width] = shape;
const length = height * width;

/** Some rows, each of one value. */
function ofRows(indices: readonly number[], values: readonly number[]): RowSparse<Float32Array> {
  const data = Float32Array.from(
    values.flatMap((value) => Array.from({ length: width }, () => value)),
  );
  return new RowSparse({ indices, data, shape });
}

/** The first element of each row. */
const heads = (array: ArrayLike<number>): number[] =>
  Array.from({ length: height }, (_, row) => array[row * width]!);

async function whole(kv: KVStore, key: string): Promise<Float32Array> {
  const out = filled(length, -1);
  await kv.pull(key, out);
  return out;
}

describe.each(['local', 'device'] as const)('on %s', (type) => {
  it('starts from rows, the others 0', async () => {
    const kv = await open(type);
    await kv.init('e', ofRows([4, 1], [4, 1]));
    expect(heads(await whole(kv, 'e'))).toEqual([0, 1, 0, 0, 4, 0]);
    const out = new RowSparse({ indices: [], data: new Float32Array(0), shape });
    await kv.rowSparsePull('e', out, [4, 0]);
    expect([...out.indices]).toEqual([0, 4]);
    expect([...out.data]).toEqual([0, 0, 0, 0, 4, 4, 4, 4]);
  });

  it.each([
    ['repeated, unsorted', [5, 0, 5, 2], [0, 2, 5]],
    [
      'two-dimensional',
      [
        [1, 3],
        [3, 0],
      ],
      [0, 1, 3],
    ],
    ['typed', Int32Array.of(3, 3), [3]],
    ['of 64 bits', BigInt64Array.of(2n, 0n), [0, 2]],
    ['none', [], []],
  ] as const)('pulls rows by ids that are %s', async (_, ids, rows) => {
    const kv = await open(type);
    const value = Float32Array.from({ length }, (_, i) => i);
    await kv.init('e', value, { shape });
    const sparse = new RowSparse({ indices: [], data: new Float32Array(0), shape });
    const dense = filled(length, -1);
    await kv.rowSparsePull('e', sparse, ids);
    await kv.rowSparsePull('e', dense, ids);
    expect([...sparse.indices]).toEqual(rows);
    expect(sparse.toDense()).toEqual(dense);
    expect(dense).toEqual(
      value.map((x, i) => ((rows as readonly number[]).includes(Math.floor(i / width)) ? x : 0)),
    );
  });

  it('gives each device the rows that it asks for', async () => {
    const kv = await open(type, { devices: 2 });
    await kv.init(['a', 'b'], [ofRows([1], [1]), ofRows([2], [2])]);
    const outs = [0, 1, 2].map(
      () => new RowSparse({ indices: [], data: new Float32Array(0), shape }),
    );
    await kv.rowSparsePull(['a', 'b'], [[outs[0]!, outs[1]!], outs[2]!], [[[1], [0, 2]], [2]]);
    expect(outs.map(({ indices, data }) => [[...indices], data[0]])).toEqual([
      [[1], 1],
      [[0, 2], 0],
      [[2], 2],
    ]);
  });

  it('aggregates rows over devices: the union, and what comes twice adds up', async () => {
    const kv = await open(type, { devices: 3 });
    await kv.init('a', ofRows([], []));
    await kv.push('a', [ofRows([0, 3], [1, 2]), ofRows([3, 5, 3], [10, 20, 30]), ofRows([], [])]);
    expect(heads(await whole(kv, 'a'))).toEqual([1, 0, 0, 42, 0, 20]);
    expect(heads(ofRows([3, 5, 3], [10, 20, 30]).toDense())).toEqual([0, 0, 0, 40, 0, 20]);
    // Without an optimizer a push assigns: what it does not bring is 0.
    await kv.push('a', ofRows([1], [7]));
    expect(heads(await whole(kv, 'a'))).toEqual([0, 7, 0, 0, 0, 0]);
  });

  it('an updater gets the whole sum', async () => {
    const kv = await open(type, { devices: 2 });
    await kv.init('a', filled(length, 1), { shape });
    await kv.setUpdater((_, received, stored) => {
      received.forEach((value, i) => ((stored as Float32Array)[i]! += 2 * Number(value)));
    });
    await kv.push('a', [ofRows([2], [3]), ofRows([2, 4], [1, 1])]);
    expect(heads(await whole(kv, 'a'))).toEqual([1, 1, 9, 1, 3, 1]);
  });

  it('pulls into rows are passed over, with a warning, unless asked for', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const kv = await open(type);
    await kv.init(['a', 'b'], [ofRows([1], [1]), filled(2, 2)]);
    const out = ofRows([3], [9]);
    const dense = filled(2, 0);
    await kv.pull(['a', 'b'], [out, dense]);
    await kv.pull('a', out);
    expect([[...out.indices], dense]).toEqual([[3], filled(2, 2)]);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]![0]).toMatch(/key a.*rowSparsePull/);
    await kv.pull('a', out, { ignoreSparse: false });
    expect(heads(out.toDense())).toEqual([0, 1, 0, 0, 0, 0]);
    expect(out.indices.length).toBe(height);
    warn.mockRestore();
  });
});

describe('what does not fit', () => {
  const code = (name: string) => ({ code: name });

  it('is no RowSparse', () => {
    const data = new Float32Array(4);
    const make = (parts: object) => () => new RowSparse(parts as never);
    expect(make({ indices: [6], data, shape })).toThrow(
      expect.objectContaining(code('ERR_OUT_OF_RANGE')) as Error,
    );
    expect(make({ indices: [0.5], data, shape })).toThrow(RangeError);
    expect(make({ indices: [0, 1], data, shape })).toThrow(/8 elements: 2 rows of 4/);
    expect(make({ indices: [0], data: [1, 2, 3, 4], shape })).toThrow(/a TypedArray/);
    expect(make({ indices: [0], data, shape: 'x' })).toThrow(TypeError);
    expect(make({ indices: [0], data, shape: [-6, 4] })).toThrow(TypeError);
    expect(make({ indices: 3, data, shape })).toThrow(/indices/);
  });

  it('is refused by the store', async () => {
    const kv = await open('device', { devices: 2 });
    await kv.init(['a', 'b'], [filled(length, 0), filled(length, 0)], { shape });
    const rows = ofRows([1], [1]);
    const flat = new RowSparse({ indices: [1], data: new Float32Array(3), shape: [8, 3] });
    const doubles = new RowSparse({ indices: [1], data: new Float64Array(4), shape });
    const value = code('ERR_INVALID_ARG_VALUE');
    await expect(kv.push('a', flat)).rejects.toMatchObject(value);
    await expect(kv.push('a', doubles)).rejects.toBeInstanceOf(TypeError);
    await expect(kv.push('a', [rows, rows, rows])).rejects.toMatchObject(value);
    await expect(kv.push('a', [rows, filled(length, 1)] as never)).rejects.toMatchObject(
      code('ERR_INVALID_ARG_TYPE'),
    );
    await expect(kv.push(['a', 'a'], [rows, filled(length, 1)])).rejects.toMatchObject(value);
    await expect(kv.push('c', rows)).rejects.toMatchObject(value);
    await expect(kv.pushPull('a', rows as never)).rejects.toBeInstanceOf(TypeError);
    await expect(kv.pull('a', rows, { ignoreSparse: 1 as never })).rejects.toBeInstanceOf(
      TypeError,
    );
  });

  it('compression is of whole arrays', async () => {
    const kv = await open('device');
    await kv.setGradientCompression({ type: '2bit' });
    await kv.init('a', filled(length, 0), { shape });
    await expect(kv.push('a', ofRows([1], [1]))).rejects.toThrow(
      errorWith('ERR_UNSUPPORTED', /key a: .*rows.*compress/),
    );
  });

  it('keys of a list may have shapes of their own, none, or that of a scalar', async () => {
    const kv = await open('local');
    const values = [filled(3, 1), filled(4, 2), filled(1, 3)];
    await kv.init(['a', 'b', 'c'], values, { shape: [undefined, [2, 2], []] });
    const out = filled(4, 0);
    await kv.rowSparsePull('b', out, [1]);
    expect([...out]).toEqual([0, 0, 2, 2]);
    await expect(kv.init(['d', 'e'], [filled(1, 0), filled(2, 0)], { shape: [1] })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /2 elements.*shape/),
    );
  });
});
