import { runInThisContext } from 'node:vm';

import { describe, expect, it } from 'vitest';

import { allGatherObject, broadcastObject, Communicator } from '../../lib/index.js';
import { ranksOfTests } from '../support/ranks.js';

const moduleText = 'new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0))';

const open = ranksOfTests();
let ranks: readonly Communicator[] = [];
const makeRanks = async (n: number) => {
  ranks = await open(n);
};

interface Settings {
  readonly name: string;
  readonly at: Date;
  readonly rates: Map<string, Float32Array>;
  self?: unknown;
}
function settings(): Settings {
  const one: Settings = {
    name: 'größe',
    at: new Date(0),
    rates: new Map([['a', Float32Array.of(1, 2)]]),
  };
  one.self = one;
  return one;
}

const codeOf = (ended: PromiseSettledResult<unknown>): unknown =>
  ended.status === 'rejected' ? (ended.reason as { code?: unknown }).code : ended.value;

describe('broadcastObject', () => {
  it.each([1, 2, 5])('gives everybody the root’s: %d ranks', async (n) => {
    await makeRanks(n);
    const root = n - 1;
    const own = settings();
    const got = await Promise.all(
      ranks.map((one) => broadcastObject(one, one.rank === root ? own : undefined, { root })),
    );
    expect(got[root]).toBe(own);
    for (const one of got) {
      expect(one).toEqual(settings());
      expect(one!.self).toBe(one);
    }
    if (n > 1) expect(got[0]).not.toBe(own);
  });

  it.each([null, undefined, 0, '', 12n, [], [undefined, , 3]])('of any kind: %o', async (value) => {
    await makeRanks(2);
    const got = await Promise.all(
      ranks.map((one) => broadcastObject<unknown>(one, one.rank === 0 ? value : 'mine')),
    );
    expect(got[1]).toEqual(value);
  });

  it('fails on all ranks where the root has nothing to send, and goes on', async () => {
    await makeRanks(3);
    const send = (value: unknown, maxBytes?: number) =>
      Promise.allSettled(ranks.map((one) => broadcastObject(one, value, { maxBytes })));
    const function_ = await send(() => 1);
    expect(function_.map(codeOf)).toEqual([
      'ERR_INVALID_ARG_VALUE',
      'ERR_MISMATCH',
      'ERR_MISMATCH',
    ]);
    const large = await send('x'.repeat(100), 64);
    expect(large.map(codeOf)).toEqual(['ERR_OUT_OF_RANGE', 'ERR_MISMATCH', 'ERR_MISMATCH']);
    expect((large[1] as PromiseRejectedResult).reason).toMatchObject({ rank: 0, usable: true });
    expect((await send('y', 64)).map(codeOf)).toEqual(['y', 'y', 'y']);
  });

  it('fails on all ranks where one takes less, and goes on', async () => {
    await makeRanks(3);
    const send = (text: string) =>
      Promise.allSettled(
        ranks.map((one) => broadcastObject(one, text, { maxBytes: one.rank === 2 ? 64 : 256 })),
      );
    const ended = await send('x'.repeat(100));
    expect(ended.map(codeOf)).toEqual(ranks.map(() => 'ERR_MISMATCH'));
    expect((ended[0] as PromiseRejectedResult).reason).toMatchObject({ rank: 0, usable: true });
    expect((await send('y')).map(codeOf)).toEqual(['y', 'y', 'y']);
  });
});

it('broadcastObject fails on all ranks whose roots differ, and goes on', async () => {
  await makeRanks(2);
  const ended = await Promise.allSettled(
    ranks.map((one) => broadcastObject(one, 1, { root: 1 - one.rank })),
  );
  for (const one of ended) {
    expect((one as PromiseRejectedResult).reason).toMatchObject({
      code: 'ERR_MISMATCH',
      message: expect.stringMatching(/rank 0 .*root 1; rank 1 .*root 0/) as string,
      usable: true,
    });
  }
  expect(await Promise.all(ranks.map((one) => broadcastObject(one, 7)))).toEqual([7, 7]);
});

describe('allGatherObject', () => {
  it.each([1, 2, 5])('gives everybody all, of each its length: %d ranks', async (n) => {
    await makeRanks(n);
    const of = (rank: number) => ({ rank, text: 'ä'.repeat(1000 * rank), from: settings() });
    const got = await Promise.all(ranks.map((one) => allGatherObject(one, of(one.rank))));
    expect(got).toEqual(ranks.map(() => ranks.map((one) => of(one.rank))));
  });

  it('names the rank that has nothing to send, and goes on', async () => {
    await makeRanks(3);
    const ended = await Promise.allSettled(
      ranks.map((one) => allGatherObject<unknown>(one, one.rank === 1 ? Symbol('s') : 1)),
    );
    expect(ended.map(codeOf)).toEqual(['ERR_MISMATCH', 'ERR_INVALID_ARG_VALUE', 'ERR_MISMATCH']);
    expect((ended[0] as PromiseRejectedResult).reason).toMatchObject({ rank: 1, usable: true });
    expect(await Promise.all(ranks.map((one) => allGatherObject(one, 7)))).toEqual(
      ranks.map(() => [7, 7, 7]),
    );
  });

  it.each([
    // The types of Node do not have WebAssembly.
    ['a module', () => runInThisContext(moduleText) as unknown],
    ['a port', () => new MessageChannel().port1],
  ])('fails on all ranks with a code and one line for what cannot be read: %s', async (_, make) => {
    await makeRanks(3);
    const one = make();
    const gathered = await Promise.allSettled(ranks.map((rank) => allGatherObject(rank, one)));
    const sent = await Promise.allSettled(ranks.map((rank) => broadcastObject(rank, one)));
    expect(gathered.map(codeOf)).toEqual(ranks.map(() => 'ERR_INVALID_ARG_VALUE'));
    expect(sent.map(codeOf)).toEqual(['ERR_INVALID_ARG_VALUE', 'ERR_MISMATCH', 'ERR_MISMATCH']);
    for (const ended of [...gathered, ...sent]) {
      const { message } = (ended as PromiseRejectedResult).reason as Error;
      expect(message).not.toMatch(/[\n\r]/);
    }
    if (one instanceof MessagePort) one.close();
  });

  it('tells all what one was given wrong', async () => {
    await makeRanks(2);
    const ended = await Promise.allSettled(
      ranks.map((one) => allGatherObject(one, 1, one.rank === 0 ? { maxBytes: 0 } : {})),
    );
    expect(ended.map(codeOf)).toEqual(['ERR_OUT_OF_RANGE', 'ERR_MISMATCH']);
    const [own, other] = ended.map((one) => (one as PromiseRejectedResult).reason as Error);
    expect(other!.message).toContain(own!.message);
  });

  it('fails on all ranks where one takes less, and names the rank that has more', async () => {
    await makeRanks(3);
    const ended = await Promise.allSettled(
      ranks.map((one) =>
        allGatherObject(one, 'x'.repeat(one.rank === 1 ? 100 : 1), {
          maxBytes: one.rank === 2 ? 64 : 256,
        }),
      ),
    );
    expect(ended.map(codeOf)).toEqual(ranks.map(() => 'ERR_MISMATCH'));
    expect((ended[0] as PromiseRejectedResult).reason).toMatchObject({ rank: 1, usable: true });
    expect(await Promise.all(ranks.map((one) => allGatherObject(one, 7)))).toHaveLength(3);
  });

  it('refuses what is no communicator of the host', async () => {
    await using group = Communicator.local(2);
    await expect(allGatherObject(group as never, 1)).rejects.toThrow(/a Communicator/);
    await expect(allGatherObject({} as never, 1)).rejects.toThrow(/a Communicator/);
  });
});
