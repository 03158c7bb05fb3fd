// Rows alone on stores of GPUs: they are pulled, and gradients are refused by name.
import { afterEach, describe, expect, it } from 'vitest';

import { RowSparse } from '../../lib/kvstore/row-sparse.js';
import type { StoreTypeName } from '../../lib/kvstore/types.js';
import { closeAll, open } from '../kvstore/support.js';
import { disposeAll, gpuCount, named, onGpu, spread } from '../support/gpu-arrays.js';

afterEach(async () => {
  await closeAll();
  disposeAll();
});

const stores: readonly { type: StoreTypeName; gpus: readonly number[] }[] = [
  { type: 'device', gpus: spread(2) },
  { type: 'local', gpus: spread(2) },
  { type: 'nccl', gpus: spread(gpuCount) },
];
const shape = [5, 2];
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

  it('a first value may be of rows, a gradient not', async () => {
    const kv = await open(type, { devices: named(gpus) });
    const rows = new RowSparse({ indices: [3], data: Float32Array.of(1, 2), shape });
    await kv.init('w', rows);
    await expect(kv.push('w', rows)).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining('a store on GPUs takes whole arrays') as string,
    });
    // It is as it was, and goes on.
    await kv.push('w', await onGpu(gpus[0]!, Array.from(rows.toDense())));
    const out = new Float32Array(10);
    await kv.pull('w', out);
    expect(out).toEqual(rows.toDense());
  });
});
