// Random operations on few arrays, some of which overlap, that nobody awaits: as if each had been awaited.
import { afterEach, expect, it } from 'vitest';

import { Random } from '../attack/support/random.js';
import { closeAll, open } from './support.js';

afterEach(closeAll);

const width = 3;

it.each(Array.from({ length: 12 }, (_, seed) => [seed]))('seed %d', async (seed) => {
  const random = new Random(seed + 100);
  const below = (limit: number) => random.int(limit);
  // Small ones are done on the spot where nothing is pending, large ones take threads.
  const length = width * (seed % 3 === 0 ? 20_000 : 1 + below(50));
  const kv = await open(seed % 2 === 0 ? 'local' : 'device', { devices: 2 });
  const keys = [0, 1, 2];
  const memory = Float64Array.from({ length: 4 * length }, () => below(1000));
  const offsets = [0, length, 2 * length, 3 * length, length >> 1];
  const arrays = offsets.map((first) => memory.subarray(first, first + length));
  const model = memory.slice();
  const copies = offsets.map((first) => model.subarray(first, first + length));
  const stored = keys.map((key) => new Float64Array(length).fill(key));
  await kv.init(keys, stored, { shape: [length / width, width] });

  const calls: Promise<void>[] = [];
  for (let step = 0; step < 120; step++) {
    const key = below(keys.length);
    const [at, other] = [below(arrays.length), below(arrays.length)];
    const priority = below(5) - 2;
    // Of those that share no memory.
    const [own, beside] = [at % 4, (at + 1 + below(3)) % 4];
    switch (below(6)) {
      case 0:
        calls.push(kv.push(key, arrays[at]!, { priority }));
        stored[key] = copies[at]!.slice();
        break;
      case 1:
        calls.push(kv.push(key, [arrays[at]!, arrays[other]!], { priority }));
        stored[key] = copies[at]!.map((value, i) => value + copies[other]![i]!);
        break;
      case 2:
        calls.push(kv.pull(key, arrays[at]!, { priority }));
        copies[at]!.set(stored[key]!);
        break;
      case 3:
        calls.push(kv.pushPull(key, arrays[own]!, arrays[beside], { priority }));
        stored[key] = copies[own]!.slice();
        copies[beside]!.set(stored[key]);
        break;
      case 4:
        calls.push(kv.pushPull(key, [arrays[own]!, arrays[beside]!], { priority }));
        stored[key] = copies[own]!.map((value, i) => value + copies[beside]![i]!);
        for (const copy of [copies[own]!, copies[beside]!]) copy.set(stored[key]);
        break;
      default: {
        const row = below(length / width);
        calls.push(kv.rowSparsePull(key, arrays[at]!, [row], { priority }));
        const rows = stored[key]!.map((value, i) => (Math.floor(i / width) === row ? value : 0));
        copies[at]!.set(rows);
      }
    }
  }
  await Promise.all(calls);
  expect(memory.every((value, i) => value === model[i])).toBe(true);
  for (const key of keys) {
    const out = new Float64Array(length);
    await kv.pull(key, out);
    expect(out.every((value, i) => value === stored[key]![i])).toBe(true);
  }
});
