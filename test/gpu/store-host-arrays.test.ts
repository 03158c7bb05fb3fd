// Arrays of the host on stores of GPUs, as MXNet takes them: pushed, pulled, in place, beside arrays of GPUs.
import { afterEach, describe, expect, it } from 'vitest';

import type { StoreTypeName } from '../../lib/kvstore/types.js';
import type { AnyArray } from '../../lib/tensor/any-array.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { closeAll, filled, open } from '../kvstore/support.js';
import { disposeAll, gpuCount, named, numbers, onGpu, spread } from '../support/gpu-arrays.js';

afterEach(async () => {
  await closeAll();
  disposeAll();
});

const stores: readonly { type: StoreTypeName; gpus: readonly number[] }[] = [
  { type: 'device', gpus: spread(4) },
  { type: 'device', gpus: [0, 0, 0, 0] },
  { type: 'local', gpus: spread(4) },
  { type: 'nccl', gpus: spread(gpuCount) },
];

/** What either kind of array holds. */
async function read(array: AnyArray): Promise<number[]> {
  if (array instanceof DeviceBuffer) return numbers(array as DeviceBuffer<'float32'>);
  return Array.from(array as Float32Array);
}

async function readAll(arrays: readonly AnyArray[]): Promise<number[][]> {
  const all: number[][] = [];
  for (const array of arrays) all.push(await read(array));
  return all;
}

describe.each(stores)('$type on $gpus', ({ type, gpus }) => {
  const n = gpus.length;
  const create = () => open(type, { devices: named(gpus) });

  /** Every other array on the host, from the first or the second on. */
  const mixed = async (first: number, of: (device: number) => readonly number[]) => {
    const arrays: AnyArray[] = [];
    for (const [i, gpu] of gpus.entries()) {
      arrays.push(i % 2 === first ? Float32Array.from(of(i)) : await onGpu(gpu, of(i)));
    }
    return arrays;
  };

  it.each([0, 1])('beside arrays of GPUs, the host every other one from %i on', async (first) => {
    const kv = await create();
    await kv.init('w', filled(3, 0));
    await kv.push('w', await mixed(first, (i) => [i, 1, 2]));
    const outs = await mixed(1 - first, () => [0, 0, 0]);
    await kv.pull('w', outs);
    const sum = (n * (n - 1)) / 2;
    expect(await readAll(outs)).toEqual(gpus.map(() => [sum, n, 2 * n]));
    // In place: what was pushed is overwritten where it is.
    const both = await mixed(first, (i) => [1, i, 3]);
    await kv.pushPull('w', both);
    expect(await readAll(both)).toEqual(gpus.map(() => [n, sum, 3 * n]));
  });

  it('follow one another without being awaited, in the order of the calls', async () => {
    const kv = await create();
    const count = 5000;
    await kv.init(['a', 'b'], [filled(count, 0), filled(count, 0)]);
    const outs = Array.from({ length: 6 }, () => filled(count, -1));
    const calls: Promise<void>[] = [];
    for (const [round, out] of outs.entries()) {
      const value = filled(count, round + 1);
      const pushed = round % 2 === 0 ? gpus.map(() => value.slice()) : await onEvery(gpus, value);
      calls.push(kv.push(['a', 'b'], [pushed, pushed.map(copy)]), kv.pull('a', out));
    }
    await Promise.all(calls);
    expect(outs.map((out) => [out[0], out[count - 1]])).toEqual(
      outs.map((_, round) => [n * (round + 1), n * (round + 1)]),
    );
  });
});

async function onEvery(gpus: readonly number[], value: Float32Array): Promise<AnyArray[]> {
  const arrays: AnyArray[] = [];
  for (const gpu of gpus) arrays.push(await onGpu(gpu, [...value]));
  return arrays;
}

function copy(array: AnyArray): AnyArray {
  return array instanceof DeviceBuffer ? array : (array as Float32Array).slice();
}
