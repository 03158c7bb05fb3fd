// Ranks that run out of data before the others, as Horovod's tests of join have them: what goes on, with which results, and
// what is refused until all have joined.
import { describe, expect, it } from 'vitest';

import { GradlinkError, allReduceMany, sparseAllReduce } from '../../lib/index.js';
import type { Communicator } from '../../lib/index.js';
import { errorWith } from '../support/errors.js';
import { codeOf, ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();

async function joinable(n: number): Promise<readonly Communicator[]> {
  const ranks = await open(n);
  for (const one of ranks) one.setJoinable();
  return ranks;
}

/** Each rank makes as many steps as its number says, and joins. What the steps gave, and whom join named. */
function uneven<T>(
  ranks: readonly Communicator[],
  step: (comm: Communicator, step: number) => Promise<T>,
) {
  return Promise.all(
    ranks.map(async (comm) => {
      const got: T[] = [];
      for (let i = 0; i < comm.rank; ++i) got.push(await step(comm, i));
      return { got, last: await comm.join() };
    }),
  );
}

describe('ranks that have joined', () => {
  it.each([1, 2, 3, 5])('bring zeros to sums: %i ranks', async (n) => {
    const ranks = await joinable(n);
    const ended = await uneven(ranks, async (comm, i) => {
      const sum = await comm.allReduce(Float32Array.of(comm.rank, 1));
      return [i, ...sum];
    });
    // In step i the ranks above i still have data.
    const sums = Array.from({ length: n - 1 }, (_, i) => {
      const active = Array.from({ length: n - 1 - i }, (_, k) => i + 1 + k);
      return [i, active.reduce((sum, rank) => sum + rank, 0), active.length];
    });
    ended.forEach(({ got, last }, rank) => {
      expect(got).toEqual(sums.slice(0, rank));
      expect(last).toBe(n - 1);
    });
  });

  it('count in averages, and change no other result', async () => {
    const ranks = await joinable(3);
    const ended = await Promise.all(
      ranks.map(async (comm) => {
        if (comm.rank === 1) return { last: await comm.join() };
        const own = comm.rank + 1;
        const root = 2;
        const got = {
          avg: [...(await comm.allReduce(Float64Array.of(own * 3), { op: 'avg' }))],
          scaled: [...(await comm.allReduce(Float32Array.of(own), { scale: 2, postscale: 10 }))],
          prod: [...(await comm.allReduce(Int32Array.of(own), { op: 'prod' }))],
          min: [...(await comm.allReduce(Int32Array.of(own), { op: 'min' }))],
          max: [...(await comm.allReduce(Float32Array.of(-own), { op: 'max' }))],
          large: (await comm.allReduce(new Float32Array(300_000).fill(own)))[299_999],
          reduce: [...((await comm.reduce(Int32Array.of(own), { root })) ?? [])],
          broadcast: [...(await comm.broadcast(Int32Array.of(own), { root }))],
          scan: [...(await comm.scan(Int32Array.of(own)))],
          exscan: [...(await comm.exscan(Int32Array.of(own)))],
          none: [...(await comm.allReduce(new Float32Array(0)))],
          all: await comm.allGatherV(Int32Array.of(own, own)),
          atRoot: await comm.gatherV(Int32Array.of(own), { root }),
          many: await allReduceMany(comm, [Float32Array.of(own), BigInt64Array.of(BigInt(own))]),
          sparse: await sparseAllReduce(comm, {
            indices: Int32Array.of(own, 7),
            values: Float32Array.of(own, 1),
          }),
        };
        await comm.barrier();
        return { got, last: await comm.join() };
      }),
    );
    const both = {
      avg: [4],
      scaled: [80],
      prod: [3],
      min: [1],
      max: [-1],
      large: 4,
      broadcast: [3],
      none: [],
      all: { data: Int32Array.of(1, 1, 3, 3), counts: [2, 0, 2] },
      many: [Float32Array.of(4), BigInt64Array.of(4n)],
      sparse: { indices: Int32Array.of(1, 3, 7), values: Float32Array.of(1, 3, 2) },
    };
    expect(ended[0]!.got).toEqual({
      ...both,
      reduce: [],
      scan: [1],
      exscan: [0],
      atRoot: undefined,
    });
    expect(ended[2]!.got).toEqual({
      ...both,
      reduce: [4],
      scan: [4],
      exscan: [1],
      atRoot: { data: Int32Array.of(1, 3), counts: [1, 0, 1] },
    });
    expect(new Set(ended.map(({ last }) => last)).size).toBe(1);
    expect([0, 2]).toContain(ended[0]!.last);
  });

  it('come back: all go on as before, and join again', async () => {
    const ranks = await joinable(3);
    for (let epoch = 0; epoch < 3; ++epoch) {
      const ended = await uneven(ranks, (comm) => comm.allReduce(Int32Array.of(1)));
      expect(ended.map(({ last }) => last)).toEqual([2, 2, 2]);
      const all = await Promise.all(ranks.map((comm) => comm.allGather(Int32Array.of(comm.rank))));
      expect(all).toEqual(ranks.map(() => Int32Array.of(0, 1, 2)));
    }
  });

  it('take part in calls that are under way together, and in those that fusion puts together', async () => {
    const ranks = await joinable(2);
    for (const one of ranks) one.setFusion({ cycleMs: 1 });
    const [, got] = await Promise.all([
      ranks[0]!.join(),
      Promise.all(
        Array.from({ length: 20 }, (_, i) => ranks[1]!.allReduce(Float32Array.of(i, 1))),
      ).then(async (sums) => {
        await ranks[1]!.join();
        return sums.map((sum) => [...sum]);
      }),
    ]);
    expect(got).toEqual(Array.from({ length: 20 }, (_, i) => [i, 1]));
  });
});

describe('what needs a part of every rank', () => {
  const refused: readonly (readonly [string, (comm: Communicator) => Promise<unknown>])[] = [
    ['allGather', (comm) => comm.allGather(Int32Array.of(1))],
    ['allToAll', (comm) => comm.allToAll(new Int32Array(3))],
    ['reduceScatter', (comm) => comm.reduceScatter(new Int32Array(3))],
    ['gather', (comm) => comm.gather(Int32Array.of(1), { root: 2 })],
    ['broadcast', (comm) => comm.broadcast(Int32Array.of(1), { root: 0 })],
    ['gatherV', (comm) => comm.gatherV(Int32Array.of(1), { root: 0 })],
    ['allToAllV', (comm) => comm.allToAllV(new Int32Array(3), { splits: [1, 1, 1] })],
    ['split', (comm) => comm.split(0)],
    [
      'neighborAllReduce',
      (comm) =>
        comm.neighborAllReduce(new Float32Array(1), {
          srcWeights: { [3 - comm.rank]: 0.5 },
          selfWeight: 0.5,
        }),
    ],
  ];
  it.each(refused)('is refused while a rank has joined: %s', async (op, call) => {
    const ranks = await joinable(3);
    const joined = ranks[0]!.join();
    const ended = await Promise.allSettled([call(ranks[1]!), call(ranks[2]!)]);
    expect(ended.map(codeOf)).toEqual(['ERR_UNSUPPORTED', 'ERR_UNSUPPORTED']);
    for (const one of ended) {
      const { reason } = one as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(GradlinkError);
      expect(reason).toMatchObject({ op, usable: true });
      expect((reason as Error).message).toMatch(/rank 0.* called join\(\)/);
    }
    // The communicator is as before, and without joined ranks all of it is there.
    const [sum] = await Promise.all(
      ranks.slice(1).map((comm) => comm.allReduce(Int32Array.of(comm.rank))),
    );
    expect(sum).toEqual(Int32Array.of(3));
    expect(await Promise.all([joined, ranks[1]!.join(), ranks[2]!.join()])).toEqual([2, 2, 2]);
    const all = await Promise.all(ranks.map((comm) => comm.allGather(Int32Array.of(comm.rank))));
    expect(all[0]).toEqual(Int32Array.of(0, 1, 2));
  });
});

describe('errors', () => {
  it('of ranks that make different calls name both, and a rank that has joined goes on', async () => {
    const ranks = await joinable(3);
    const joined = ranks[2]!.join();
    const ended = await Promise.allSettled([
      ranks[0]!.allReduce(new Float32Array(4), { name: 'grad' }),
      ranks[1]!.allReduce(new Float32Array(5), { op: 'max', name: 'most' }),
    ]);
    expect(ended.map(codeOf)).toEqual(['ERR_MISMATCH', 'ERR_MISMATCH']);
    const texts = ended.map((one) => ((one as PromiseRejectedResult).reason as Error).message);
    expect(texts[0]).toMatch(/^allReduce 'grad': /);
    for (const text of texts) {
      expect(text).toMatch(/rank 0 called allReduce\(count 4, float32, sum\).*'grad'/);
      expect(text).toMatch(/rank 1 called allReduce\(count 5, float32, max\).*'most'/);
    }
    const sums = await Promise.all(ranks.slice(0, 2).map((c) => c.allReduce(Int32Array.of(2))));
    expect(sums).toEqual([Int32Array.of(4), Int32Array.of(4)]);
    expect(await Promise.all([joined, ranks[0]!.join(), ranks[1]!.join()])).toEqual([1, 1, 1]);
  });

  it('say that a rank is not joinable', async () => {
    const ranks = await open(2);
    await expect(ranks[0]!.join()).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' });
    ranks[0]!.setJoinable();
    expect(ranks.map((one) => one.joinable)).toEqual([true, false]);
    const ended = await Promise.allSettled(ranks.map((one) => one.allReduce(new Float32Array(3))));
    expect(ended.map(codeOf)).toEqual(['ERR_MISMATCH', 'ERR_MISMATCH']);
    expect(((ended[0] as PromiseRejectedResult).reason as Error).message).toMatch(
      /setJoinable\(\)/,
    );
  });

  it('refuse to begin while calls are pending', async () => {
    const ranks = await open(2);
    const pending = ranks[0]!.allReduce(Float32Array.of(1));
    expect(() => {
      ranks[0]!.setJoinable();
    }).toThrow(/pending/);
    await Promise.all([pending, ranks[1]!.allReduce(Float32Array.of(1))]);
  });

  it('of a rank that left end the wait of one that has joined', async () => {
    const ranks = await joinable(2);
    // Awaited from the beginning: join() may end before close() does.
    const joined = expect(ranks[0]!.join()).rejects.toMatchObject({
      code: 'ERR_PEER_LOST',
      op: 'join',
    });
    await ranks[1]!.close();
    await joined;
  });

  it('end a wait for calls that do not come, and say who does not', async () => {
    const ranks = await joinable(2);
    await expect(ranks[0]!.join({ timeoutMs: 20 })).rejects.toThrow(
      errorWith('ERR_TIMEOUT', /rank 1/),
    );
  });
});
