// Integers with neighbours, and int16 where only the host has it.
import { describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { dtypeNames } from '../../lib/tensor/dtype.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, valuesOf } from '../support/numbers.js';
import { codeOf, ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();
/** The greatest numbers. */
const ends = {
  int8: 2 ** 7 - 1,
  uint8: 2 ** 8 - 1,
  int16: 2 ** 15 - 1,
  int32: 2 ** 31 - 1,
  uint32: 2 ** 32 - 1,
};

/** On every rank, the arrays at once. */
const onAll = <T>(ranks: readonly Communicator[], run: (one: Communicator, rank: number) => T) =>
  Promise.all(ranks.map(run));

describe('nodes of integers', () => {
  it('divide sums once, and weigh them like ranks', async () => {
    const ranks = await open(4);
    await onAll(ranks, (one) => one.setMachineTopology(undefined, { ranksPerNode: 2 }));
    const mean = await onAll(ranks, (one, rank) =>
      one.hierarchicalNeighborAllReduce(Int16Array.of(10 * rank, -7)),
    );
    expect(mean).toEqual(ranks.map(() => Int16Array.of(15, -7)));
    const half = await onAll(ranks, (one, rank) => {
      const other = rank < 2 ? 1 : 0;
      return one.hierarchicalNeighborAllReduce(Int32Array.of(rank < 2 ? 1 : 4), {
        selfWeight: 0.5,
        srcMachineWeights: { [other]: 0.5 },
        dstMachineWeights: { [other]: 1 },
      });
    });
    // (0.5 * 2 + 0.5 * 8) / 2 = 2.5
    expect(half).toEqual(ranks.map(() => Int32Array.of(2)));
  });

  it('average what is near the end of the type as allReduce does, halves too', async () => {
    const ranks = await open(4);
    await onAll(ranks, (one) => one.setMachineTopology(undefined, { ranksPerNode: 2 }));
    for (const dtype of ['int8', 'uint8', 'int16', 'int32', 'uint32'] as const) {
      for (const end of [ends[dtype], dtype.startsWith('u') ? 0 : -ends[dtype]]) {
        const data = (rank: number) => arrayOf(dtype, [end, end - Math.sign(end) * 3 * rank]);
        const want = await onAll(ranks, (one, rank) =>
          one.allReduce(data(rank) as Int32Array, { op: 'avg' }),
        );
        const got = await onAll(ranks, (one, rank) =>
          one.hierarchicalNeighborAllReduce(data(rank) as Int32Array),
        );
        expect(got).toEqual(want);
      }
    }
    for (const dtype of ['float16', 'bfloat16'] as const) {
      // float16 and bfloat16 of 0x7bff and 0x7f7f: the greatest; their sums are beyond float32.
      const bits = dtype === 'float16' ? [0x7bff, 0x3c00, 0x3c01] : [0x7f7f, 0x3f80, 0x3f81];
      const data = (rank: number) =>
        Uint16Array.of(bits[0]!, bits[0]!, rank === 0 ? bits[2]! : bits[1]!);
      const want = await onAll(ranks, (one, rank) =>
        one.allReduce(data(rank), { op: 'avg', dtype }),
      );
      const got = await onAll(ranks, (one, rank) =>
        one.hierarchicalNeighborAllReduce(data(rank), { dtype }),
      );
      expect(got).toEqual(want);
    }
  });

  it('are ERR_MISMATCH on every rank where types of one width differ', async () => {
    const ranks = await open(4);
    for (const other of [1, 2]) {
      await onAll(ranks, (one) => one.setMachineTopology(undefined, { ranksPerNode: 2 }));
      const ended = await Promise.allSettled(
        ranks.map((one, rank) =>
          one.hierarchicalNeighborAllReduce(
            (rank >= other ? new Int8Array(4) : new Uint32Array(4)) as unknown as Int32Array,
          ),
        ),
      );
      expect(ended.map(codeOf)).toEqual(ranks.map(() => 'ERR_MISMATCH'));
    }
  });
});

describe('int16', () => {
  it('is a type of messages, windows and shared arrays', async () => {
    const ranks = await open(2);
    const [a, b] = ranks as [Communicator, Communicator];
    const got = new Int16Array(3);
    await Promise.all([a.send(Int16Array.of(-1, 300, 7), { to: 1 }), b.receive(got, { from: 0 })]);
    expect(got).toEqual(Int16Array.of(-1, 300, 7));
    const windows = await onAll(ranks, (one, rank) => one.createWindow(Int16Array.of(rank * 300)));
    await Promise.all(windows.map((window) => window.put()));
    await onAll(ranks, (one) => one.barrier());
    expect(await Promise.all(windows.map((window) => window.update()))).toEqual([
      Int16Array.of(150),
      Int16Array.of(150),
    ]);
    await Promise.all(windows.map((window) => window.free()));
    const shared = a.allocShared('int16', 4);
    expect(shared).toBeInstanceOf(Int16Array);
    expect(valuesOf('int16', shared)).toEqual([0, 0, 0, 0]);
  });

  it('keeps the numbers of the others', () => {
    expect(dtypeNames.indexOf('float64')).toBe(9);
    expect(dtypeNames.indexOf('float8e5m2')).toBe(11);
    expect(dtypeNames.indexOf('int16')).toBe(12);
  });

  it('is refused where a GPU would hold it, with the way to go', () => {
    // @ts-expect-error -- only the host has it
    expect(() => DeviceBuffer.alloc(0, 'int16', 4)).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /int16.*int32 for dtype.*'int16'/),
    );
  });
});
