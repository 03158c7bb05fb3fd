// Random sequences of operations against a plain model, compared bit for bit.
import { afterEach, expect, it } from 'vitest';

import { closeAll, open, random } from './support.js';

afterEach(closeAll);

/** One key as a plain array. */
class Model {
  stored: Float32Array;

  constructor(
    first: Float32Array,
    readonly rowLength: number,
  ) {
    this.stored = first.slice();
  }

  push(values: readonly Float32Array[]): void {
    this.stored = values.reduce((sum, value) => sum.map((x, i) => x + value[i]!));
  }

  rows(ids: readonly number[]): Float32Array {
    return this.stored.map((x, i) => (ids.includes(Math.floor(i / this.rowLength)) ? x : 0));
  }
}

it.each(Array.from({ length: 8 }, (_, seed) => [seed]))('seed %d', async (seed) => {
  const next = random(seed + 1);
  const below = (limit: number) => Math.floor(next() * limit);
  const devices = 1 + below(4);
  const kv = await open(next() < 0.5 ? 'local' : 'device', { devices });
  const some = (length: number) => Float32Array.from({ length }, () => (next() - 0.5) * 1e3);
  const models = new Map<number, Model>();
  const pending: Promise<void>[] = [];
  const compare: [got: Float32Array, expected: Float32Array][] = [];

  const expectIn = (outs: Float32Array[], expected: Float32Array) => {
    for (const out of outs) compare.push([out, expected]);
  };
  for (let step = 0; step < 150; step++) {
    const priority = below(7) - 3;
    const keys = [...models.keys()];
    const key = keys[below(keys.length)] ?? -1;
    const model = models.get(key);
    if (model === undefined || (step % 25 === 0 && keys.length < 12)) {
      const rowLength = 1 + below(5);
      const rows = below(4) === 0 ? 3000 + below(8000) : below(300);
      const first = some(rows * rowLength);
      const fresh = step * 2 ** 33;
      models.set(fresh, new Model(first, rowLength));
      pending.push(kv.init(fresh, first, { shape: [rows, rowLength] }));
      continue;
    }
    const { length } = model.stored;
    const outs = Array.from({ length: 1 + below(devices) }, () => some(length));
    const values = Array.from({ length: 1 + below(devices) }, () => some(length));
    switch (below(6)) {
      case 0:
      case 1:
        model.push(values);
        pending.push(kv.push(key, values, { priority }));
        break;
      case 2:
        pending.push(kv.pull(key, outs, { priority }));
        expectIn(outs, model.stored);
        break;
      case 3:
        model.push(values);
        pending.push(kv.pushPull(key, values, outs, { priority }));
        expectIn(outs, model.stored);
        break;
      case 4: {
        model.push(values);
        pending.push(kv.pushPull(key, values, { priority }));
        expectIn(values, model.stored);
        break;
      }
      default: {
        const height = length / model.rowLength;
        const ids = height === 0 ? [] : Array.from({ length: below(9) }, () => below(height));
        pending.push(kv.rowSparsePull(key, outs, ids, { priority }));
        expectIn(outs, model.rows(ids));
      }
    }
    if (below(40) === 0) await Promise.all(pending.splice(0));
  }
  await Promise.all(pending);
  for (const [got, expected] of compare) {
    expect(Buffer.compare(Buffer.from(got.buffer), Buffer.from(expected.buffer))).toBe(0);
  }
});
