// Compiled by `tsc --noEmit` as well as run: what must not compile is marked, and an unused mark is an error.
import { afterAll, describe, expect, expectTypeOf, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { Received } from '../../lib/communicator/types.js';

const one = Communicator.local(1);
afterAll(() => one.close());

describe('types', () => {
  it('tie the array to its dtype', async () => {
    const failing = [
      // @ts-expect-error -- a Float32Array does not hold int32
      one.allReduce(new Float32Array(4), { dtype: 'int32' }),
      // @ts-expect-error -- nor bfloat16
      one.broadcast(new Float32Array(4), { dtype: 'bfloat16' }),
      // @ts-expect-error -- a Uint16Array must say what it holds
      one.allReduce(new Uint16Array(4)),
      // @ts-expect-error -- and not this
      one.allGather(new Uint16Array(4), { dtype: 'uint8' }),
      // @ts-expect-error -- Uint8ClampedArray holds no dtype
      one.allReduce(new Uint8ClampedArray(4)),
      // @ts-expect-error -- there is no such op
      one.allReduce(new Float32Array(4), { op: 'mean' }),
      // @ts-expect-error -- out must hold the same
      one.allReduce(new Float32Array(4), { out: new Float64Array(4) }),
      // @ts-expect-error -- a list of another type
      one.allReduce([new Int32Array(4)], { dtype: 'float32' }),
    ];
    const settled = await Promise.allSettled(failing);
    expect(settled.every((each) => each.status === 'rejected')).toBe(true);

    await one.allReduce(new Float32Array(4), { dtype: 'float32', op: 'max' });
    await one.allReduce(new Uint16Array(4), { dtype: 'bfloat16' });
    await one.allReduce([new Uint16Array(4)], { dtype: 'float16' });
    await one.allReduce(Buffer.alloc(4));
  });

  it('give back what was given', async () => {
    const data = new Int32Array(2);
    expectTypeOf(one.allReduceSync(data)).toEqualTypeOf<typeof data>();
    expectTypeOf(await one.allReduce(data)).toEqualTypeOf<typeof data>();
    expectTypeOf(await one.allReduce([data])).toEqualTypeOf<(typeof data)[]>();
    expectTypeOf(await one.reduce(data)).toEqualTypeOf<typeof data | undefined>();
    expectTypeOf(await one.allGather(data)).toEqualTypeOf<Int32Array>();
    expectTypeOf(await one.allGather([data])).toEqualTypeOf<Int32Array[]>();
    expectTypeOf(await one.gather([data])).toEqualTypeOf<Int32Array | undefined>();
    expectTypeOf(await one.allToAll(Buffer.alloc(2))).toEqualTypeOf<Uint8Array>();
    expectTypeOf(await one.scatter(data)).toEqualTypeOf<Int32Array>();
    expectTypeOf(await one.scatter(data, { out: data })).toEqualTypeOf<typeof data>();
    expectTypeOf(one.allocShared('int64', 1)).toEqualTypeOf<BigInt64Array>();
    expectTypeOf(one.allocShared('bfloat16', 1)).toEqualTypeOf<Uint16Array>();
    expectTypeOf<Awaited<ReturnType<typeof one.receive>>>().toEqualTypeOf<Received>();
    expectTypeOf(one).toExtend<AsyncDisposable>();
  });
});
