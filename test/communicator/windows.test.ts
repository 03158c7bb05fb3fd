import { describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import type { NeighborWindow } from '../../lib/communicator/windows/window.js';
import type { WindowOptions } from '../../lib/communicator/calls/types.js';
import { exponentialTwoGraph, meshGrid2DGraph, ringGraph } from '../../lib/topology/index.js';
import type { Topology } from '../../lib/topology/index.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, valuesOf } from '../support/numbers.js';
import { ranksOfTests } from '../support/ranks.js';

const openRanks = ranksOfTests();
let ranks: readonly Communicator[] = [];
const make = async (n: number, graph: Topology = exponentialTwoGraph(n), weighted = false) => {
  ranks = await openRanks(n);
  ranks.forEach((one) => one.setTopology(graph, { weighted }));
};

const open = (datas: readonly Float64Array[], options?: WindowOptions) =>
  Promise.all(ranks.map((one, rank) => one.createWindow(datas[rank]!, options)));
const numbers = (n: number, length = 1) =>
  Array.from({ length: n }, (_, rank) => new Float64Array(length).fill(rank + 1));
const free = (windows: readonly NeighborWindow[]) => Promise.all(windows.map((one) => one.free()));
const sizes = [1, 2, 3, 4, 7];

describe('windows', () => {
  it.each(['float32', 'float64', 'float16', 'bfloat16', 'int32', 'int64'] as const)(
    'put %s where the target finds it without calling anything',
    async (dtype) => {
      for (const n of sizes) {
        await make(n);
        for (const length of [0, 1, 5001]) {
          const fill = (value: number) => arrayOf(dtype, new Array<number>(length).fill(value));
          const windows = await Promise.all(
            ranks.map((one, rank) =>
              one.createWindow(fill(12 * (rank + 1)) as Uint16Array, {
                dtype: dtype as 'float16',
                zeroInit: true,
              }),
            ),
          );
          // One after the other: nobody waits for anybody.
          for (const window of windows) await window.put();
          windows.forEach((window) => {
            const ones = Object.fromEntries(window.sources.map((source) => [source, 1]));
            expect(window.versions()).toEqual(ones);
          });
          for (const window of windows) {
            await window.update({ selfWeight: 1, srcWeights: window.sources });
          }
          windows.forEach((window, rank) => {
            const sum = [rank, ...window.sources].reduce((total, one) => total + 12 * (one + 1), 0);
            expect(valuesOf(dtype, window.array)).toEqual(new Array<number>(length).fill(sum));
            expect(Object.values(window.versions()).every((version) => version === 0)).toBe(true);
          });
          await free(windows);
        }
      }
    },
  );

  it('weigh on both ends, and scale what was put', async () => {
    await make(3, ringGraph(3, 'right'));
    const windows = await open(numbers(3));
    await windows[0]!.put(undefined, { dstWeights: { 1: 8 }, selfWeight: 0.5 });
    expect(windows[0]!.array[0]).toBe(0.5);
    const out = new Float64Array(1);
    expect(windows[1]!.updateSync({ selfWeight: 10, srcWeights: { 0: 0.25 }, out })).toBe(out);
    expect([out[0], windows[1]!.array[0]]).toEqual([22, 2]);
    const other = Float64Array.of(100);
    windows[1]!.putSync(other, { selfWeight: 2 });
    expect(other[0]).toBe(200);
    await windows[2]!.update({ selfWeight: 0, srcWeights: [1] });
    expect(windows[2]!.array[0]).toBe(100);
    await free(windows);
  });

  it('accumulate without counting versions, and collect', async () => {
    await make(4);
    const windows = await open(numbers(4, 70_000), { zeroInit: true, associatedP: true });
    for (const window of windows) {
      await window.accumulate();
      window.accumulateSync(undefined, { dstWeights: window.destinations });
    }
    windows.forEach((window) => expect(Object.values(window.versions())).toEqual([0, 0]));
    const all = await Promise.all(windows.map((window) => window.updateThenCollect()));
    // Each p of 1 went to two, twice, as the data did.
    expect(windows.map((one) => one.associatedP)).toEqual([5, 5, 5, 5]);
    all.forEach((array, rank) => {
      const want = windows[rank]!.sources.reduce((sum, one) => sum + 2 * (one + 1), rank + 1);
      expect(new Set(array)).toEqual(new Set([want]));
    });
    const before = all.map((array) => array[0]);
    windows.forEach((window) => window.updateThenCollectSync());
    expect(all.map((array) => array[0])).toEqual(before);
    await free(windows);
  });

  it('get what a neighbour has at that moment', async () => {
    await make(2);
    const windows = await open(numbers(2), { zeroInit: true });
    windows[1]!.array[0] = 40;
    await windows[0]!.get({ srcWeights: { 1: 0.5 } });
    windows[1]!.array[0] = 50;
    expect(windows[0]!.versions()).toEqual({ 1: 1 });
    await windows[0]!.update();
    expect(windows[0]!.array[0]).toBe((1 + 20) / 2);
    windows[0]!.getSync();
    expect(windows[0]!.updateSync({ selfWeight: 0, srcWeights: [1], reset: true })[0]).toBe(50);
    expect(windows[0]!.updateSync({ selfWeight: 0, srcWeights: [1] })[0]).toBe(0);
    await free(windows);
  });

  it('average by the graph where it is weighted, else exactly over all', async () => {
    for (const weighted of [true, false]) {
      const graph = meshGrid2DGraph(6);
      await make(6, graph, weighted);
      const windows = await open(numbers(6).map((one) => one.map((value) => 12 * value)));
      for (const window of windows) await window.put();
      for (const window of windows) await window.update();
      windows.forEach((window, rank) => {
        const { selfWeight, weights } = graph.receiveWeights(rank);
        const entries = Object.entries({ ...weights, [rank]: selfWeight });
        const want = entries.reduce(
          (sum, [from, weight]) =>
            sum + (weighted ? weight : 1 / entries.length) * 12 * (Number(from) + 1),
          0,
        );
        expect(window.array[0]).toBeCloseTo(want, 10);
      });
      await free(windows);
    }
  });

  it('keep p at 1 where nobody asked for it', async () => {
    await make(2);
    const windows = await open(numbers(2));
    await windows[0]!.put(undefined, { selfWeight: 0.5 });
    await windows[0]!.update();
    expect(windows[0]!.associatedP).toBe(1);
    // Nobody has written there: it starts as a copy of the array, which was 1.
    expect(windows[0]!.array[0]).toBe(0.75);
    await free(windows);
  });

  it('lock: one at a time, given back after a failure, ERR_TIMEOUT while held', async () => {
    await make(3);
    const windows = await open(numbers(3));
    const order: string[] = [];
    const first = windows[0]!.withMutex(async () => {
      order.push('in 0');
      await expect(
        windows[1]!.withMutex(() => undefined, { forSelf: true, ranks: [0], timeoutMs: 5 }),
      ).rejects.toMatchObject({ code: 'ERR_TIMEOUT', op: 'withMutex' });
      order.push('out 0');
    });
    await first;
    await expect(
      windows[1]!.withMutex(
        () => {
          throw new Error('mine');
        },
        { forSelf: true },
      ),
    ).rejects.toThrow('mine');
    expect(await windows[0]!.withMutex(() => 'again')).toBe('again');
    expect(order).toEqual(['in 0', 'out 0']);
    await free(windows);
  });

  it('refuse misuse', async () => {
    await make(3, ringGraph(3, 'right'));
    const windows = await open(numbers(3));
    const [window] = windows;
    await expect(window!.put(undefined, { dstWeights: [2] })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /\(1\).*dstWeights/),
    );
    await expect(window!.get({ srcWeights: [1] })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /\(2\).*srcWeights/),
    );
    await expect(window!.put(new Float64Array(2))).rejects.toThrow(/of 1 elements/);
    await expect(window!.update({ selfWeight: 1 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /selfWeight.*srcWeights/),
    );
    const { array } = window!;
    await free(windows);
    await expect(window!.put()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    expect(() => window!.versions()).toThrow(errorWith('ERR_CLOSED', /was freed/));
    // Its memory is gone: neither a crash nor old numbers.
    expect(() => window!.array).toThrow(errorWith('ERR_CLOSED', /was freed/));
    expect(array.length).toBe(0);
    const ints = await Promise.all(ranks.map((one) => one.createWindow(Int32Array.of(3))));
    await expect(ints[0]!.put(undefined, { selfWeight: 0.5 })).rejects.toThrow(/need a float type/);
    await free(ints);
  });
});
