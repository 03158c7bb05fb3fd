import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { errorWith } from '../support/errors.js';

const alone = Communicator.local(1);
const three = Communicator.local(3);
let one: Communicator;
beforeAll(async () => {
  [one] = (await alone.openRanks()) as [Communicator];
});
afterAll(() => Promise.all([alone.close(), three.close()]));

const f32 = (length = 3) => new Float32Array(length);

/** Four elements of one memory, from the first or the second on. */
const memory = f32(6);
const own = (first: number) => memory.subarray(first, first + 4);
const Resizable = ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer;
const resizable = () => new Float32Array(new Resizable(16, { maxByteLength: 32 }));
function detached() {
  const array = f32();
  structuredClone(array, { transfer: [array.buffer] });
  return array;
}

/** Calls past the types, as JavaScript would. */
type Loose = Record<
  'allReduce' | 'allToAll' | 'barrier' | 'broadcast' | 'neighborAllReduce' | 'scatter',
  (...args: unknown[]) => Promise<unknown>
>;
const loose = (communicator: Communicator | LocalGroup) => communicator as unknown as Loose;

describe('arguments of collectives', () => {
  const [type, value] = ['ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE'];
  const [range, overlaps] = ['ERR_OUT_OF_RANGE', 'ERR_BUFFER_OVERLAP'];
  const weights = (more: object) => ({ selfWeight: 1, srcWeights: {}, ...more });
  const cases: [string, string, RegExp, (c: Loose) => unknown][] = [
    ['no data', type, / data,.*undefined/, (c) => c.allReduce()],
    ['a plain array', type, /TypedArray.* data,.*array of 3/, (c) => c.allReduce(['1', '2', '3'])],
    ['a wrong array', type, /Uint8ClampedArray of 3/, (c) => c.allReduce(new Uint8ClampedArray(3))],
    ['a DataView', type, /got a DataView/, (c) => c.allReduce(new DataView(new ArrayBuffer(8)))],
    ['halves without dtype', value, /'bfloat16'.*dtype/, (c) => c.allReduce(new Uint16Array(3))],
    ['another dtype', value, /'float32'.*'int32'/, (c) => c.allReduce(f32(), { dtype: 'int32' })],
    ['no dtype', value, /int8, .*'float'/, (c) => c.allReduce(f32(), { dtype: 'float' })],
    ['an unknown op', value, /sum.*avg.* op,.*'mean'/, (c) => c.allReduce(f32(), { op: 'mean' })],
    ['a root out of range', range, /0 to 0 .*root.* 1$/, (c) => c.broadcast(f32(), { root: 1 })],
    ['a root as text', type, /0 to 0 .*root.*'0'/, (c) => c.broadcast(f32(), { root: '0' })],
    ['a timeout of 0', range, /above 0 .*timeoutMs.* 0$/, (c) => c.barrier({ timeoutMs: 0 })],
    ['options that are none', type, /options.*'sum'/, (c) => c.allReduce(f32(), 'sum')],
    ['a longer out', value, /3 elements.*out.*4/, (c) => c.allReduce(f32(3), { out: f32(4) })],
    ['another out', type, / out,.*64/, (c) => c.allReduce(f32(3), { out: new Float64Array(3) })],
    ['an out that overlaps', overlaps, / data .*out,/, (c) => c.allReduce(own(0), { out: own(1) })],
    ['an all-to-all in place', overlaps, /./, (c) => c.allToAll(own(0), { out: own(0) })],
    ['a resizable buffer', value, / data,.*resizable/, (c) => c.allReduce(resizable())],
    ['a detached array', value, / data,.*detached/, (c) => c.allReduce(detached())],
    ['no rank', range, /'5'/, (c) => c.neighborAllReduce(f32(), weights({ srcWeights: { 5: 1 } }))],
    ['no weight', value, /NaN/, (c) => c.neighborAllReduce(f32(), weights({ selfWeight: NaN }))],
  ];

  it.each(cases)('refuse %s, and the communicator stays usable', async (_, code, tokens, call) => {
    const refused = Promise.resolve().then(() => call(loose(one)));
    await expect(refused).rejects.toThrow(errorWith(code, tokens));
    const ours = new Float32Array([1, 2]);
    expect(await one.allReduce(ours)).toEqual(new Float32Array([1, 2]));
  });

  it('are a TypeError or, out of range, a RangeError', async () => {
    await expect(loose(one).allReduce('x')).rejects.toBeInstanceOf(TypeError);
    await expect(loose(one).broadcast(f32(), { root: 9 })).rejects.toBeInstanceOf(RangeError);
  });

  it('are thrown by the blocking twins', () => {
    expect(() => one.allReduceSync(f32(), { out: f32(9) })).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /3 elements.*out.*9/),
    );
  });
});

describe('arguments of a group', () => {
  it('must be one array for each rank', async () => {
    await expect(three.allReduce([f32(), f32()])).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /3 TypedArrays.* data,.*array of 2/),
    );
    await expect(loose(three).allReduce(f32())).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /3 TypedArrays.*Float32Array of 3/),
    );
  });

  it('must agree in type and length', async () => {
    await expect(three.allReduce([f32(), f32(), f32(4)])).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', / rank 0 .*\b3 .* rank 2 4\b/),
    );
    await expect(loose(three).allReduce([f32(), f32(), new Int32Array(3)])).rejects.toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
  });

  it('may be parts of one buffer, but not overlap', async () => {
    const buffer = new Float32Array([1, 2, 3, 4, 5, 6]);
    const parts = [0, 2, 4].map((start) => buffer.subarray(start, start + 2));
    await three.allReduce(parts);
    expect([...buffer]).toEqual([9, 12, 9, 12, 9, 12]);
    const overlapping = [0, 1, 4].map((start) => buffer.subarray(start, start + 2));
    await expect(three.allReduce(overlapping)).rejects.toMatchObject({
      code: 'ERR_BUFFER_OVERLAP',
    });
  });

  it('need a length that the ranks can share', async () => {
    await expect(three.allToAll([f32(4), f32(4), f32(4)])).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /3 ranks.*data.*length 4/),
    );
  });

  it('of scatter need an out', async () => {
    await expect(loose(three).scatter(f32(6))).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', / out,.*undefined/),
    );
  });

  it('of one rank are lists too', async () => {
    await expect(loose(alone).allReduce(f32())).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /TypedArray.*data.*Float32Array of 3/),
    );
    const [data, out] = [f32(), f32()];
    expect(await alone.allReduce([data], { out: [out] })).toEqual([out]);
    expect(await alone.scatter(data, { out: [out] })).toEqual([out]);
    expect(await alone.reduce([data], { out })).toBe(out);
  });

  it('name no operation of one rank', () => {
    const ofOneRank = ['send', 'receive', 'split', 'pairGossip', 'createWindow', 'setTopology'];
    for (const name of [...ofOneRank, 'neighborAllReduce', 'neighborAllGather', 'rank']) {
      expect(name in one, name).toBe(true);
      expect(name in alone, name).toBe(false);
    }
  });
});

describe('arguments of making communicators', () => {
  it('are checked', async () => {
    expect(() => Communicator.local(0)).toThrow(
      errorWith('ERR_OUT_OF_RANGE', /1 to 65536 .* n,.* 0$/),
    );
    expect(() => Communicator.local(1.5)).toThrow(errorWith('ERR_OUT_OF_RANGE', / n,.*1\.5/));
    await expect(Communicator.join({ name: '', rank: 0, size: 1 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /name.*''/),
    );
    await expect(Communicator.join({ name: 'x', rank: 2, size: 2 })).rejects.toThrow(
      errorWith('ERR_OUT_OF_RANGE', /0 to 1 .*rank.* 2$/),
    );
    const noName = { rank: 0, size: 1 } as { name: string; rank: number; size: number };
    await expect(Communicator.join(noName)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
  });

  it('cannot be bypassed by the native class', () => {
    const native = alone as unknown as { executor: { native: { constructor: new () => unknown } } };
    expect(() => new native.executor.native.constructor()).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /static methods/),
    );
  });
});
