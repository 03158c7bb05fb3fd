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

/** Calls past the types, as JavaScript would. */
type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>;
const loose = (communicator: Communicator | LocalGroup) => communicator as unknown as Loose;

describe('arguments of collectives', () => {
  const cases: [string, (c: Loose) => unknown, string, RegExp][] = [
    ['no data', (c) => c['allReduce']?.(), 'ERR_INVALID_ARG_TYPE', / data,.*undefined/],
    [
      'a plain array',
      (c) => c['allReduce']?.(['1', '2', '3']),
      'ERR_INVALID_ARG_TYPE',
      /TypedArray.* data,.*array of 3/,
    ],
    [
      'an array of the wrong kind',
      (c) => c['allReduce']?.(new Uint8ClampedArray(3)),
      'ERR_INVALID_ARG_TYPE',
      / data,.*Uint8ClampedArray of 3/,
    ],
    [
      'a DataView',
      (c) => c['allReduce']?.(new DataView(new ArrayBuffer(8))),
      'ERR_INVALID_ARG_TYPE',
      /got a DataView/,
    ],
    [
      'a Uint16Array without dtype',
      (c) => c['allReduce']?.(new Uint16Array(3)),
      'ERR_INVALID_ARG_VALUE',
      /'float16' or 'bfloat16'.*Uint16Array.*dtype/,
    ],
    [
      'a dtype that contradicts',
      (c) => c['allReduce']?.(f32(), { dtype: 'int32' }),
      'ERR_INVALID_ARG_VALUE',
      /'float32'.*data.*dtype.*'int32'/,
    ],
    [
      'a dtype there is none of',
      (c) => c['allReduce']?.(f32(), { dtype: 'float' }),
      'ERR_INVALID_ARG_VALUE',
      /int8, .*float64, int16 for dtype.*'float'/,
    ],
    [
      'an unknown op',
      (c) => c['allReduce']?.(f32(), { op: 'mean' }),
      'ERR_INVALID_ARG_VALUE',
      /sum.*prod.*min.*max.*avg.* op,.*'mean'/,
    ],
    [
      'a root out of range',
      (c) => c['broadcast']?.(f32(), { root: 1 }),
      'ERR_OUT_OF_RANGE',
      /0 to 0 .*root.* 1$/,
    ],
    [
      'a root that is no number',
      (c) => c['broadcast']?.(f32(), { root: '0' }),
      'ERR_INVALID_ARG_TYPE',
      /0 to 0 .*root.*'0'/,
    ],
    [
      'a timeout of 0',
      (c) => c['barrier']?.({ timeoutMs: 0 }),
      'ERR_OUT_OF_RANGE',
      /above 0 .*timeoutMs.* 0$/,
    ],
    [
      'options that are none',
      (c) => c['allReduce']?.(f32(), 'sum'),
      'ERR_INVALID_ARG_TYPE',
      /options.*'sum'/,
    ],
    [
      'an out of another length',
      (c) => c['allReduce']?.(f32(3), { out: f32(4) }),
      'ERR_INVALID_ARG_VALUE',
      /3 elements.*out.*4/,
    ],
    [
      'an out of another type',
      (c) => c['allReduce']?.(f32(3), { out: new Float64Array(3) }),
      'ERR_INVALID_ARG_TYPE',
      / data .*out,.*Float64Array of 3/,
    ],
    [
      'an out that overlaps',
      (c) => {
        const buffer = new Float32Array(6);
        return c['allReduce']?.(buffer.subarray(0, 4), { out: buffer.subarray(1, 5) });
      },
      'ERR_BUFFER_OVERLAP',
      / data .*out,/,
    ],
    [
      'an all-to-all in place',
      (c) => {
        const buffer = new Float32Array(6);
        return c['allToAll']?.(buffer, { out: buffer });
      },
      'ERR_BUFFER_OVERLAP',
      /./,
    ],
    [
      'a resizable buffer',
      (c) => {
        const Resizable = ArrayBuffer as unknown as new (
          length: number,
          options: object,
        ) => ArrayBuffer;
        return c['allReduce']?.(new Float32Array(new Resizable(16, { maxByteLength: 32 })));
      },
      'ERR_INVALID_ARG_VALUE',
      / data,.*resizable/,
    ],
    [
      'a detached array',
      (c) => {
        const array = f32();
        structuredClone(array, { transfer: [array.buffer] });
        return c['allReduce']?.(array);
      },
      'ERR_INVALID_ARG_VALUE',
      / data,.*detached/,
    ],
    [
      'a neighbour that is no rank',
      (c) => c['neighborAllReduce']?.(f32(), { selfWeight: 1, srcWeights: { 5: 1 } }),
      'ERR_OUT_OF_RANGE',
      /srcWeights.*'5'/,
    ],
    [
      'a weight that is no number',
      (c) => c['neighborAllReduce']?.(f32(), { selfWeight: NaN, srcWeights: {} }),
      'ERR_INVALID_ARG_VALUE',
      /selfWeight.*NaN/,
    ],
  ];

  it.each(cases)('refuse %s, and the communicator stays usable', async (_, call, code, tokens) => {
    const refused = Promise.resolve().then(() => call(loose(one)));
    await expect(refused).rejects.toThrow(errorWith(code, tokens));
    const ours = new Float32Array([1, 2]);
    expect(await one.allReduce(ours)).toEqual(new Float32Array([1, 2]));
  });

  it('are a TypeError or, out of range, a RangeError', async () => {
    await expect(loose(one)['allReduce']?.('x')).rejects.toBeInstanceOf(TypeError);
    await expect(loose(one)['broadcast']?.(f32(), { root: 9 })).rejects.toBeInstanceOf(RangeError);
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
    await expect(loose(three)['allReduce']?.(f32())).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /3 TypedArrays.*Float32Array of 3/),
    );
  });

  it('must agree in type and length', async () => {
    await expect(three.allReduce([f32(), f32(), f32(4)])).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', / rank 0 .*\b3 .* rank 2 4\b/),
    );
    await expect(
      loose(three)['allReduce']?.([f32(), f32(), new Int32Array(3)]),
    ).rejects.toMatchObject({
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
    await expect(loose(three)['scatter']?.(f32(6))).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', / out,.*undefined/),
    );
  });

  it('of one rank are lists too', async () => {
    await expect(loose(alone)['allReduce']?.(f32())).rejects.toThrow(
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
