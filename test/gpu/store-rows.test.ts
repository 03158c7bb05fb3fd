// Rows alone on stores of GPUs: pulled, and pushed in numbers. What optimizers make of them is tested natively.
import { afterEach, describe, expect, it } from 'vitest';

import { RowSparse } from '../../lib/kvstore/row-sparse.js';
import type { StoreTypeName } from '../../lib/kvstore/types.js';
import { Adam, SGD } from '../../lib/optimizers/index.js';
import { closeAll, open } from '../kvstore/support.js';
import { disposeAll, gpuCount, named, spread } from '../support/gpu-arrays.js';

afterEach(async () => {
  await closeAll();
  disposeAll();
});

const stores: readonly { type: StoreTypeName; gpus: readonly number[] }[] = [
  { type: 'device', gpus: spread(2) },
  { type: 'local', gpus: spread(2) },
  // NCCL takes each GPU once, and rows are pushed from two devices here.
  ...(gpuCount > 1 ? [{ type: 'nccl', gpus: spread(gpuCount) } as const] : []),
];
const shape = [5, 2];
/** Each element another number. */
const waves = (
  indices: readonly number[],
  seed: number,
  [height, width]: readonly [number, number],
): RowSparse => {
  const data = Float32Array.from({ length: indices.length * width }, (_, i) => Math.cos(seed + i));
  return new RowSparse({ indices, data, shape: [height, width] });
};
const empty = () => new RowSparse({ indices: [], data: new Float32Array(0), shape });

describe.each(stores)('$type on $gpus', ({ type, gpus }) => {
  it('rows of a value are pulled', async () => {
    const kv = await open(type, { devices: named(gpus) });
    await kv.init(
      'w',
      Float32Array.from({ length: 10 }, (_, i) => i),
      { shape },
    );
    const outs = gpus.map(empty);
    await kv.rowSparsePull('w', outs, [4, 1, 4]);
    for (const out of outs) {
      expect([...out.indices]).toEqual([1, 4]);
      expect([...out.data]).toEqual([2, 3, 8, 9]);
    }
    const all = empty();
    await kv.pull('w', all, { ignoreSparse: false });
    expect([...all.toDense()]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  // Every second row: as many parts as there can be, next to all of a key that takes few pages.
  it('thousands of rows apart, then all of them', async () => {
    const many = [20_001, 3] as const;
    const size = many[0] * many[1];
    const values: Float32Array[] = [];
    for (const devices of [named(gpus), 1] as const) {
      const kv = await open(type === 'nccl' && devices === 1 ? 'device' : type, { devices });
      await kv.init('w', new Float32Array(size), { shape: many });
      await kv.setOptimizer(new Adam());
      for (const step of [1, 4000, 2, 1]) {
        const rows = Array.from({ length: Math.ceil(many[0] / step) }, (_, i) => i * step);
        await kv.push('w', waves(rows, step, many));
      }
      const out = new Float32Array(size);
      await kv.pull('w', out);
      values.push(out);
    }
    // Not compared whole: the report of a difference would take half a minute.
    expect(values[0]!.findIndex((value, i) => value !== values[1]![i])).toBe(-1);
  });
});

it('a row of halves is stepped beside its float32 copy', async () => {
  const results: Uint16Array[] = [];
  for (const devices of [named(spread(1)), 1] as const) {
    const kv = await open('device', { devices });
    await kv.init('w', new Uint16Array(10).fill(0x3c00), { shape, dtype: 'float16' });
    await kv.setOptimizer(new SGD({ learningRate: 0.01, momentum: 0.9, multiPrecision: true }));
    const data = new Uint16Array(4).fill(0x2e66);
    for (let step = 0; step < 5; step++) {
      await kv.push('w', new RowSparse({ indices: [4, 1], data, shape }));
    }
    const out = new Uint16Array(10);
    await kv.pull('w', out);
    results.push(out);
  }
  expect(results[0]).toEqual(results[1]);
  expect(results[0]![2]).not.toBe(0x3c00);
});
