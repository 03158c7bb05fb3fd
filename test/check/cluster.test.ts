// Which host or way of a cluster is named: from what pairs of hosts measured, from who reaches whom, from sums of halves.
import { describe, expect, it } from 'vitest';

import { rankTasks } from '../../lib/check/cluster/fleet.js';
import { cutOff } from '../../lib/check/cluster/cluster-run.js';
import {
  better,
  hostFaults,
  judgedWays,
  suspects,
  type Point,
  type HostWay,
} from '../../lib/check/cluster/ways.js';
import { ringBound, slowPart } from '../../lib/check/cluster/whole.js';
import type { HostSeen } from '../../lib/doctor/hosts/compare.js';
import { messageCase, noneAlike } from '../../lib/measure/hosts/message-case.js';

const hosts = ['a', 'b', 'c', 'd'];

interface Shown {
  readonly seconds: number;
  readonly lost?: number;
}

function way(from: string, to: string, directed: boolean, { seconds, lost }: Shown): HostWay {
  const result = messageCase(
    { name: directed ? 'bandwidth' : 'latency', parameters: { from, to } },
    {
      samplesSeconds: [seconds, 1.1 * seconds],
      iterationsPerSample: 1,
      warmupIterations: 0,
      bytes: 8,
      wrong: 0,
      verdict: noneAlike('not yet judged'),
      ...(lost === undefined ? {} : { values: () => ({ retransmittedShare: lost }) }),
    },
  );
  return { from, to, directed, result };
}

/** The ways of all pairs, each direction apart where they are directed. */
function point(directed: boolean, of: (from: string, to: string) => Shown, among = hosts): Point {
  return among.flatMap((from, at) =>
    among
      .filter((to, other) => (directed ? to !== from : other > at))
      .map((to) => way(from, to, directed, of(from, to))),
  );
}

/** The ways that are errors. */
function bad(points: readonly Point[], faulty: readonly string[] = []): string[] {
  return judgedWays(points, new Set(faulty))
    .filter(({ status }) => status === 'error')
    .map(({ parameters: { from, to } }) => `${String(from)} ${String(to)}`);
}

const usual = { seconds: 1 };
const slow = { seconds: 10 };

describe('a host', () => {
  it.for([
    ['all ways', (from: string, to: string) => from === 'd' || to === 'd'],
    ['ways from it', (from: string) => from === 'd'],
    ['ways to it', (_: string, to: string) => to === 'd'],
  ] as const)('is named for %s, and no way of it', ([side, isSlow]) => {
    const points = [
      point(true, (from, to) => (isSlow(from, to) ? slow : usual)),
      // Both ways at once are as slow as the slower one.
      point(false, (from, to) => (from === 'd' || to === 'd' ? slow : usual)),
    ];
    const faults = hostFaults(hosts, points);
    expect(faults.map(({ host }) => host)).toEqual(['d']);
    expect(new Set(faults[0]!.sides)).toEqual(new Set([side]));
    expect(bad(points, ['d'])).toEqual([]);
  });

  it('is not named for one way, nor among two', () => {
    const one = point(true, (from, to) => (from === 'a' && to === 'c' ? slow : usual));
    expect(hostFaults(hosts, [one])).toEqual([]);
    const two = point(false, () => slow, ['a', 'b']);
    expect(hostFaults(['a', 'b'], [two])).toEqual([]);
  });

  it('is named for what all its ways lose', () => {
    const lossy = point(false, (from, to) => ({
      ...usual,
      lost: from === 'b' || to === 'b' ? 0.01 : 0,
    }));
    expect(hostFaults(hosts, [lossy]).map(({ host }) => host)).toEqual(['b']);
  });

  it('that is slow and loses packets is told to be both', () => {
    const both = point(true, (from, to) =>
      from === 'b' || to === 'b' ? { ...slow, lost: to === 'b' ? 0.01 : 0 } : usual,
    );
    const [fault] = hostFaults(hosts, [both]);
    expect(fault).toMatchObject({ host: 'b', sides: ['all ways', 'ways to it'] });
  });
});

describe('a way', () => {
  it('is named in its direction, and once', () => {
    const oneWay = point(true, (from, to) => (from === 'a' && to === 'c' ? slow : usual));
    const both = point(false, (from, to) => (from === 'a' && to === 'c' ? slow : usual));
    expect(bad([oneWay, both])).toEqual(['a c']);
    expect(bad([both, oneWay])).toEqual(['a c']);
  });

  it.each([
    [false, 'between b and d'],
    [true, 'from b to d'],
  ])('is named for what it loses, and measured again', (directed, ends) => {
    const lossy = point(directed, (from, to) => ({
      ...usual,
      lost: from + to === 'bd' ? 0.005 : 0,
    }));
    const found = judgedWays([lossy], new Set()).filter(({ status }) => status === 'error');
    expect(found).toMatchObject([
      {
        reason: expect.stringMatching(/^0\.5 % /),
        verdict: { likelyCause: expect.stringContaining(ends) },
      },
    ]);
    expect(suspects(lossy).map(({ from, to }) => from + to)).toEqual(['bd']);
  });

  it('is named where all lose as much', () => {
    expect(bad([point(false, () => ({ ...usual, lost: 0.01 }))])).toHaveLength(6);
  });

  it('is not named where ways differ by their nature', () => {
    // Two racks: what lies between them takes three times as long.
    const rack = (host: string): boolean => host < 'c';
    const racks = point(true, (from, to) => ({
      seconds: rack(from) === rack(to) ? 1 + (from < to ? 0.2 : 0) : 3 + (from < to ? 0.2 : 0),
    }));
    expect(bad([racks])).toEqual([]);
  });

  it('is measured again where it stands out, and the better counts', () => {
    const one = point(false, (from, to) => (from + to === 'ab' ? slow : usual));
    expect(suspects(one).map(({ from, to }) => from + to)).toEqual(['ab']);
    const [first = one[0]!] = suspects(one);
    const again = way('a', 'b', false, usual);
    expect(better(first, again)).toBe(again);
    expect(better(again, first)).toBe(again);
  });
});

describe('hosts that do not reach one another', () => {
  const facts = {} as HostSeen['facts'];
  const seen = (isBroken: (from: string, to: string) => boolean): HostSeen[] =>
    hosts.map((host) => ({
      host,
      facts,
      reached: hosts
        .filter((to) => to !== host)
        .map((to) => (isBroken(host, to) ? { to, error: 'no answer' } : { to, roundTripMs: 1 })),
    }));

  it('are a host where nobody reaches it', () => {
    const found = cutOff(seen((_, to) => to === 'c'));
    expect(found.map(({ host, byItself }) => [host, byItself])).toEqual([['c', true]]);
  });

  it('are two, one of which is left out, where others reach both', () => {
    const found = cutOff(seen((from, to) => [from, to].sort().join('') === 'bc'));
    expect(found.map(({ host, byItself, ways }) => [host, byItself, ways.length])).toEqual([
      ['c', false, 2],
    ]);
    expect(cutOff(seen(() => false))).toEqual([]);
  });
});

it('ranks of a check meet elsewhere than the job around it', () => {
  const asked = hosts.map((host) => ({ host, name: host, address: '127.0.0.1' }));
  const outer = { MASTER_ADDR: '127.0.0.1', MASTER_PORT: '29500' };
  const tasks = rankTasks(asked, ['pairs'], 1000, { ...outer, NCCL_DEBUG: 'INFO', HOME: '/' });
  const ports = new Set([...tasks.values()].map(({ env }) => env.MASTER_PORT));
  expect(ports.size).toBe(1);
  expect(ports).not.toContain(outer.MASTER_PORT);
  const [first] = tasks.values();
  expect(first!.env).toMatchObject({ GRADLINK_RANK: '0', GRADLINK_SIZE: '4', NCCL_DEBUG: 'INFO' });
  expect(first!.env).not.toHaveProperty('HOME');
});

describe('a slow part', () => {
  const many = Array.from({ length: 8 }, (_, at) => `h${String(at)}`);

  it('is found by halves', async () => {
    const tried: (readonly string[])[] = [];
    const found = await slowPart(many, (part) => {
      tried.push(part);
      return Promise.resolve(part.includes('h5'));
    });
    expect(found).toEqual(['h4', 'h5']);
    expect(tried).toHaveLength(4);
  });

  it('is slower than a ring of their ways, over which each sends 2 (n - 1) / n of the array', () => {
    expect(ringBound(4, 8, 1e-9).seconds).toBeCloseTo(12e-9, 15);
  });

  it('is all of them where both halves are slow, or neither', async () => {
    for (const slow of [true, false]) {
      expect(await slowPart(many, () => Promise.resolve(slow))).toEqual(many);
    }
  });
});
