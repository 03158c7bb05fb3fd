// Rows alone on stores of GPUs: pulled, and pushed with the results of stores on the host.
import { afterEach, describe, expect, it } from 'vitest';

import { RowSparse } from '../../lib/kvstore/row-sparse.js';
import type { StoreTypeName } from '../../lib/kvstore/types.js';
import { Adam, AdaGrad, Ftrl, GroupAdaGrad, LAMB, SGD } from '../../lib/optimizers/index.js';
import type { Optimizer } from '../../lib/optimizers/index.js';
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
const common = { learningRate: 0.1, wd: 0.01, clipGradient: 5 };
const optimizers: readonly [string, () => Optimizer][] = [
  ['SGD', () => new SGD(common)],
  ['SGD with momentum', () => new SGD({ ...common, momentum: 0.9 })],
  ['SGD that is not lazy', () => new SGD({ ...common, momentum: 0.9, lazyUpdate: false })],
  ['Adam', () => new Adam(common)],
  ['AdaGrad', () => new AdaGrad(common)],
  ['Ftrl', () => new Ftrl(common)],
  ['LAMB', () => new LAMB(common)],
];
/** Of stores that step on the host. */
const hostOptimizers: typeof optimizers = [['GroupAdaGrad', () => new GroupAdaGrad()]];
const ofRows = (indices: readonly number[], value: number): RowSparse => {
  const data = new Float32Array(indices.length * 2).fill(value);
  return new RowSparse({ indices, data, shape });
};
/** Each element another number. */
const waves = (
  indices: readonly number[],
  seed: number,
  [height, width] = shape as [number, number],
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

  const own = type === 'local' ? [...optimizers, ...hostOptimizers] : optimizers;
  it.each(own)('%s steps as on the host, bit for bit', async (_, make) => {
    const stores = [
      await open(type, { devices: named(gpus) }),
      await open('local', { devices: gpus.length }),
    ] as const;
    const start = Float32Array.from({ length: 10 }, (_, i) => Math.sin(i));
    const values: Float32Array[] = [];
    for (const kv of stores) {
      await kv.init('w', start, { shape });
      await kv.setOptimizer(make());
      for (const [step, rows] of [[0, 1, 4], [4], [], [1, 3, 2, 1]].entries()) {
        await kv.push('w', [waves(rows, step), waves([4], 0.3)]);
      }
      await kv.push(
        'w',
        Float32Array.from({ length: 10 }, (_, i) => i / 7),
      );
      const out = new Float32Array(10);
      await kv.pull('w', out);
      values.push(out);
    }
    expect(values[0]).toEqual(values[1]);
    expect(values[0]).not.toEqual(start);
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
        await kv.push('w', waves(rows, step, [...many]));
      }
      const out = new Float32Array(size);
      await kv.pull('w', out);
      values.push(out);
    }
    // Not compared whole: the report of a difference would take half a minute.
    expect(values[0]!.findIndex((value, i) => value !== values[1]![i])).toBe(-1);
  });

  it('pushes of rows and pulls are in the order of the calls', async () => {
    const kv = await open(type, { devices: named(gpus) });
    await kv.init('w', ofRows([], 0));
    await kv.setOptimizer(new SGD({ learningRate: 1 }));
    const outs = Array.from({ length: 20 }, () => new Float32Array(10));
    await Promise.all(outs.flatMap((out) => [kv.push('w', ofRows([1, 3], -1)), kv.pull('w', out)]));
    expect(outs.map((out) => [out[2], out[4], out[7]])).toEqual(
      outs.map((_, i) => [i + 1, 0, i + 1]),
    );
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
