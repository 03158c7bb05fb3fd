import { describe, expect, it } from 'vitest';

import {
  coresOfHosts,
  measureSharedLimit,
  type Peers,
} from '../../../lib/measure/machine/shared-limit.js';

/** Processes of this test: what each brings in a round is given to all once all have brought it. */
function peersOf(size: number): Peers[] {
  const rounds: { readonly values: (readonly number[])[]; readonly told: (() => void)[] }[] = [];
  return Array.from({ length: size }, (_, rank) => {
    let calls = 0;
    return {
      rank,
      gather: async (values) => {
        const round = (rounds[calls++] ??= { values: [], told: [] });
        round.values[rank] = values;
        if (Object.keys(round.values).length === size) round.told.forEach((tell) => tell());
        else await new Promise<void>((resolve) => round.told.push(resolve));
        return round.values;
      },
    };
  });
}

const limits = (cores: readonly (readonly number[])[]) => {
  const seen: (readonly number[])[] = [];
  return {
    seen,
    all: Promise.all(
      peersOf(cores.length).map((peer, rank) =>
        measureSharedLimit(
          {
            rank,
            gather: (values) => {
              if (values.length === 2) seen[rank] = values;
              return peer.gather(values);
            },
          },
          1,
          cores[rank],
        ),
      ),
    ),
  };
};

it('the cores of a host are those of all its processes, at most what the tightest control group grants', async () => {
  const cores = [[0, 1], [1], [40]];
  const counted = (granted: readonly (number | null)[]) =>
    Promise.all(peersOf(3).map((peer, at) => coresOfHosts(peer, cores[at], granted[at])));
  expect(await counted([null, null, null])).toEqual(Array(3).fill([3, 3, 3]));
  expect(await counted([null, 1.5, 2])).toEqual(Array(3).fill([1.5, 1.5, 1.5]));
});

describe('the limit of several processes', () => {
  it('is what those with cores of their own copy together', async () => {
    const { seen, all } = limits([[0], [40]]);
    const [first, second] = await all;
    expect(second).toEqual(first);
    expect(seen.every(([rate = 0]) => rate > 0)).toBe(true);
    expect(first).toMatchObject({
      copyBytesPerSecond: (seen[0]?.[0] ?? 0) + (seen[1]?.[0] ?? 0),
      availableCores: 2,
    });
  });

  it('is measured once by those that share their cores', async () => {
    const { seen, all } = limits([
      [0, 1],
      [0, 1],
      [2, 3],
    ]);
    const [first] = await all;
    expect(seen.map(([rate = 0]) => rate > 0)).toEqual([true, false, true]);
    expect(first?.availableCores).toBe(4);
  });

  it('is that of one process where there is only one', async () => {
    const { seen, all } = limits([[5]]);
    expect(await all).toEqual([
      {
        copyBytesPerSecond: seen[0]?.[0],
        threads: seen[0]?.[1],
        availableCores: 1,
        measures: true,
        measuring: 1,
      },
    ]);
  });
});
