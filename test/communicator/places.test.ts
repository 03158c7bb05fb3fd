import { afterEach, describe, expect, it, vi } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import { hostsOfRanks } from '../../lib/communicator/joining/hosts.js';
import { alikeInRuns } from '../../lib/communicator/neighbors/nodes.js';
import { errorWith } from '../support/errors.js';
import { ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();
afterEach(() => vi.unstubAllEnvs());

const placeOf = (one: Communicator) => [
  one.localRank,
  one.localSize,
  one.machineRank,
  one.machineSize,
];

describe('the place of a rank among nodes', () => {
  it('is that of one node before any were formed, and then of those', async () => {
    const ranks = await open(4);
    expect(ranks.map(placeOf)).toEqual([
      [0, 4, 0, 1],
      [1, 4, 0, 1],
      [2, 4, 0, 1],
      [3, 4, 0, 1],
    ]);
    await Promise.all(ranks.map((one) => one.setMachineTopology(undefined, { ranksPerNode: 2 })));
    expect(ranks.map(placeOf)).toEqual([
      [0, 2, 0, 2],
      [1, 2, 0, 2],
      [0, 2, 1, 2],
      [1, 2, 1, 2],
    ]);
  });

  it('follows GRADLINK_RANKS_PER_NODE', async () => {
    vi.stubEnv('GRADLINK_RANKS_PER_NODE', '2');
    const ranks = await open(4);
    expect(placeOf(ranks[3]!)).toEqual([1, 2, 1, 2]);
  });

  it('is homogeneous on one host', async () => {
    const ranks = await open(3);
    const told = await Promise.all(ranks.map((one) => one.isHomogeneous()));
    expect(told).toEqual([true, true, true]);
    const hosts = await Promise.all(ranks.map((one) => hostsOfRanks(one)));
    expect(new Set(hosts.flat()).size).toBe(1);
  });

  it.each([
    [['a', 'a', 'b', 'b'], true],
    [['a', 'b', 'c'], true],
    [['a'], true],
    [['a', 'b', 'a', 'b'], false],
    [['a', 'a', 'b', 'c'], false],
    [['a', 'a', 'a', 'b', 'b'], false],
    [['a', 'a', 'b', 'b', 'a', 'a'], false],
  ])('of ranks on hosts %j it is homogeneous: %s', (hosts, alike) => {
    expect(alikeInRuns(hosts)).toBe(alike);
  });
});

describe('windows by name', () => {
  it('are found, listed, and gone once freed', async () => {
    const ranks = await open(2);
    const windows = await Promise.all(
      ranks.map((one) => one.createWindow(Float32Array.of(one.rank), { name: 'grad/1' })),
    );
    const second = await Promise.all(
      ranks.map((one) => one.createWindow(new Float64Array(2), { name: 'other' })),
    );
    ranks.forEach((one, rank) => {
      expect(one.window('grad/1')).toBe(windows[rank]);
      expect(one.windowNames).toEqual(['grad/1', 'other']);
      expect(() => one.window('grad/2')).toThrow(
        errorWith('ERR_UNSUPPORTED', /'grad\/2'.*grad\/1, other/),
      );
    });
    await expect(
      ranks[0]!.createWindow(new Float32Array(1), { name: 'other' }),
    ).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    await Promise.all(windows.map((one) => one.free()));
    expect(ranks[0]!.windowNames).toEqual(['other']);
    await Promise.all(
      ranks.map((one) => one.createWindow(new Float32Array(1), { name: 'grad/1' })),
    );
    await Promise.all(second.map((one) => one.free()));
  });

  it('are ERR_MISMATCH on every rank under different names, and the ranks go on', async () => {
    const ranks = await open(3);
    const ended = await Promise.allSettled(
      ranks.map((one) =>
        one.createWindow(new Float32Array(1), { name: one.rank === 1 ? 'a' : 'b' }),
      ),
    );
    for (const one of ended) {
      expect((one as PromiseRejectedResult).reason).toMatchObject({
        code: 'ERR_MISMATCH',
        usable: true,
      });
    }
    await Promise.all(ranks.map((one) => one.createWindow(new Float32Array(1), { name: 'a' })));
    expect(ranks.map((one) => one.windowNames)).toEqual([['a'], ['a'], ['a']]);
  });
});
