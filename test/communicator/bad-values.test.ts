// One bad value of one rank in one step: every path that adds shows it when it comes, leaves its neighbours alone, and is
// afterwards as if that step had not been.
import { afterEach, describe, expect, it } from 'vitest';

import { allReduceMany, Communicator, KVStore, sparseAllReduce } from '../../lib/index.js';
import { RowSparse } from '../../lib/kvstore/row-sparse.js';
import { halfTable, toHalf } from '../../lib/tensor/half.js';
import { ringGraph } from '../../lib/topology/index.js';

const ranks = 2;
const count = 96;
/** Where it comes, on rank 1. */
const at = 37;

/** One step of all ranks: what each gets of what each brings. */
type Step = (brought: readonly Float32Array[]) => Promise<readonly Float32Array[]>;
interface Path {
  readonly open: () => Promise<Step>;
  /** Elements that a bad one reaches; itself alone when absent. */
  readonly reaches?: (i: number) => boolean;
}

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

async function openRanks(): Promise<readonly Communicator[]> {
  const group = Communicator.local(ranks);
  closing.push(() => group.close());
  return await group.openRanks();
}

/** A path whose ranks each make a call of their own. */
const ofRanks = (
  call: (comm: Communicator, data: Float32Array) => Promise<Float32Array>,
  begin?: (comm: Communicator) => void,
): (() => Promise<Step>) => {
  return async () => {
    const comms = await openRanks();
    for (const comm of comms) begin?.(comm);
    return (brought) => Promise.all(comms.map((comm, rank) => call(comm, brought[rank]!.slice())));
  };
};

const store = (type: 'local' | 'device'): (() => Promise<Step>) => {
  return async () => {
    const kv = await KVStore.create(type, { devices: ranks });
    closing.push(() => kv.close());
    await kv.init('w', new Float32Array(count));
    return async (brought) => {
      await kv.push('w', [...brought]);
      const out = new Float32Array(count);
      await kv.pull('w', out);
      return [out];
    };
  };
};

/** Rows in an order of their own. */
const shuffled = (rows: number): number[] => Array.from({ length: rows }, (_, i) => (i * 7) % rows);
const rowLength = 4;
const shuffledRows = (data: Float32Array) => {
  const indices = shuffled(count / rowLength);
  const values = new Float32Array(count);
  indices.forEach((row, i) => {
    values.set(data.subarray(row * rowLength, (row + 1) * rowLength), i * rowLength);
  });
  return { indices: Int32Array.from(indices), values };
};

const everywhere = (): boolean => true;

const paths: Readonly<Record<string, Path>> = {
  allReduce: { open: ofRanks((comm, data) => comm.allReduce(data)) },
  'allReduce, named, average': {
    open: ofRanks((comm, data) => comm.allReduce(data, { op: 'avg', name: 'grad' })),
  },
  'allReduce of float16': {
    open: ofRanks(async (comm, data) => {
      const halves = Uint16Array.from(data, (value) => toHalf('float16', value));
      const sums = await comm.allReduce(halves, { dtype: 'float16' });
      return Float32Array.from(sums, (half) => halfTable('float16')[half]!);
    }),
  },
  'allReduce, fused': {
    open: ofRanks(
      async (comm, data) => {
        const parts = [data.slice(0, 30), data.slice(30, 40), data.slice(40)];
        const sums = await Promise.all(parts.map((part) => comm.allReduce(part)));
        return Float32Array.of(...sums.flatMap((sum) => [...sum]));
      },
      (comm) => {
        comm.setFusion();
      },
    ),
  },
  adasum: {
    open: ofRanks((comm, data) => comm.allReduce(data, { op: 'adasum' })),
    reaches: everywhere,
  },
  neighborAllReduce: {
    open: ofRanks(
      (comm, data) => comm.neighborAllReduce(data),
      (comm) => {
        comm.setTopology(ringGraph(ranks));
      },
    ),
  },
  allReduceMany: {
    open: ofRanks(async (comm, data) => {
      const parts = [data.slice(0, 30), data.slice(30)];
      await allReduceMany(comm, parts, { name: 'step' });
      return Float32Array.of(...parts.flatMap((part) => [...part]));
    }),
  },
  'sparseAllReduce, rows out of order': {
    open: ofRanks(async (comm, data) => {
      return (await sparseAllReduce(comm, shuffledRows(data), { rowLength })).values;
    }),
  },
  'store, local': { open: store('local') },
  'store, device': { open: store('device') },
  'store, rows out of order': {
    open: async () => {
      const kv = await KVStore.create('local', { devices: ranks });
      closing.push(() => kv.close());
      const shape = [count / rowLength, rowLength];
      await kv.init('w', new Float32Array(count), { shape });
      return async (brought) => {
        const rows = brought.map((data) => {
          const { indices, values } = shuffledRows(data);
          return new RowSparse({ indices: [...indices], data: values, shape });
        });
        await kv.push('w', rows);
        const out = new Float32Array(count);
        await kv.pull('w', out, { ignoreSparse: false });
        return [out];
      };
    },
  },
};

/** What rank `rank` brings to step `step`: sums of which are exact in halves, and leave residuals. */
const brought = (step: number, bad?: number): Float32Array[] =>
  Array.from({ length: ranks }, (_, rank) =>
    Float32Array.from({ length: count }, (_, i) =>
      bad !== undefined && rank === 1 && i === at
        ? bad
        : (((i * 5 + step * 3 + rank) % 11) - 5) / 8,
    ),
  );

describe.each(Object.entries(paths))('%s', (_, { open, reaches = (i) => i === at }) => {
  it.each([NaN, Infinity, -Infinity])('%f', async (bad) => {
    // The same steps, without the bad value and without the step.
    const [step, good, without] = [await open(), await open(), await open()];
    for (let i = 0; i < 4; ++i) {
      const result = await step(brought(i));
      expect(await good(brought(i))).toEqual(result);
      expect(await without(brought(i))).toEqual(result);
    }
    for (const result of await step(brought(4, bad))) {
      expect(result[at]).not.toSatisfy(Number.isFinite);
      const reached = Array.from(result.keys()).filter((i) => !Number.isFinite(result[i]));
      expect(reached.filter((i) => !reaches(i))).toEqual([]);
    }
    await good(brought(4, 0));
    const again = await step(brought(5));
    const [others, reached] = [await good(brought(5)), await without(brought(5))];
    const expected = again.map((result, rank) =>
      result.map((_, i) => (reaches(i) ? reached : others)[rank]![i]!),
    );
    expect(again).toEqual(expected);
  });
});
