// Compiled by `tsc --noEmit` as well as run: what must not compile is marked, and an unused mark is an error.
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { Received } from '../../lib/communicator/calls/types.js';
import { errorWith } from '../support/errors.js';

const group = Communicator.local(1);
let one: Communicator;
beforeAll(async () => {
  [one] = (await group.openRanks()) as [Communicator];
});
afterAll(() => group.close());

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
      group.allReduce([new Int32Array(4)], { dtype: 'float32' }),
    ];
    const settled = await Promise.allSettled(failing);
    expect(settled.every((each) => each.status === 'rejected')).toBe(true);

    await one.allReduce(new Float32Array(4), { dtype: 'float32', op: 'max' });
    await one.allReduce(new Uint16Array(4), { dtype: 'bfloat16' });
    await group.allReduce([new Uint16Array(4)], { dtype: 'float16' });
    await one.allReduce(Buffer.alloc(4));
  });

  it('tell a group, which takes a list, from a rank, which takes an array', async () => {
    const data = new Float32Array(4);
    const failing = [
      // @ts-expect-error -- one array for each rank
      group.allReduce(data),
      // @ts-expect-error -- outs too
      group.allReduce([data], { out: data }),
      // @ts-expect-error -- a rank has one array
      one.allReduce([data]),
      // @ts-expect-error -- a group cannot make what a scatter gives
      group.scatter(data),
      // @ts-expect-error -- nor for who brings nothing
      group.scatter(null, { dtype: 'float32', count: 1 }),
    ];
    const settled = await Promise.allSettled(failing);
    expect(settled.map(({ status }) => status)).toEqual(failing.map(() => 'rejected'));
    // @ts-expect-error -- what two ranks do is their business
    expect(() => group.send(data, { to: 0 })).toThrow(TypeError);
    expectTypeOf(group).not.toExtend<Communicator>();
    expectTypeOf(one).not.toExtend<typeof group>();
  });

  it('name every option', async () => {
    const data = new Float32Array(4);
    const failing = [
      // @ts-expect-error -- it is called op
      one.allReduce(data, { Op: 'max' }),
      // @ts-expect-error -- everybody's
      one.allReduce(data, { root: 0 }),
      // @ts-expect-error -- one rank has one factor
      one.allReduce(data, { scale: [2] }),
      // @ts-expect-error -- it is called timeoutMs
      one.barrier({ timeout: 1 }),
      // @ts-expect-error -- it is called tag
      one.receive(data, { tags: 1 }),
      // @ts-expect-error -- it is called ranksPerNode
      one.setMachineTopology(undefined, { ranksPerHost: 1 }),
      // @ts-expect-error -- it is called size
      Communicator.join({ name: 'x', rank: 0, size: 1, sizes: 1 }),
      // @ts-expect-error -- it is called timeoutMs
      Communicator.world({ timeout: 1 }),
    ];
    const settled = await Promise.allSettled(failing);
    expect(settled.map(({ status }) => status)).toEqual(failing.map(() => 'rejected'));
    // @ts-expect-error -- it is called weighted
    expect(() => one.setTopology(one.topology, { weights: true })).toThrow(/'weights'/);
    // @ts-expect-error -- it is called cycleMs
    expect(() => one.setFusion({ cycle: 1 })).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /'cycle'.*cycleMs\?/),
    );
    // @ts-expect-error -- no signal ends a call that blocks
    expect(() => one.barrierSync({ signal: AbortSignal.timeout(1) })).toThrow(/'signal'/);
  });

  it('give back what was given', async () => {
    const data = new Int32Array(2);
    expectTypeOf(one.allReduceSync(data)).toEqualTypeOf<typeof data>();
    expectTypeOf(await one.allReduce(data)).toEqualTypeOf<typeof data>();
    expectTypeOf(await group.allReduce([data])).toEqualTypeOf<(typeof data)[]>();
    expectTypeOf(await one.reduce(data)).toEqualTypeOf<typeof data | undefined>();
    expectTypeOf(await one.allGather(data)).toEqualTypeOf<Int32Array>();
    expectTypeOf(await group.allGather([data])).toEqualTypeOf<Int32Array[]>();
    expectTypeOf(await group.gather([data])).toEqualTypeOf<Int32Array | undefined>();
    expectTypeOf(await one.allToAll(Buffer.alloc(2))).toEqualTypeOf<Uint8Array>();
    expectTypeOf(await one.scatter(data)).toEqualTypeOf<Int32Array>();
    expectTypeOf(await one.scatter(data, { out: data })).toEqualTypeOf<typeof data>();
    expectTypeOf(await group.scatter(data, { out: [data] })).toEqualTypeOf<(typeof data)[]>();
    expectTypeOf(one.allocShared('int64', 1)).toEqualTypeOf<BigInt64Array>();
    expectTypeOf(one.allocShared('bfloat16', 1)).toEqualTypeOf<Uint16Array>();
    expectTypeOf<Awaited<ReturnType<typeof one.receive>>>().toEqualTypeOf<Received>();
    expectTypeOf(one).toExtend<AsyncDisposable>();
    expectTypeOf(group).toExtend<AsyncDisposable>();
  });
});
