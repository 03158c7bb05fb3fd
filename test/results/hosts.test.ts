// Which host and which way between two is called slow, and which is not.
import { describe, expect, it } from 'vitest';

import { hostLines } from '../../lib/report/host-lines.js';
import { beside } from '../../lib/results/beside.js';
import { compareHosts, hostMargin, type LinkSeconds } from '../../lib/results/hosts.js';

const usual = { medianSeconds: 1e-3, fastestSeconds: 0.9e-3 };
const times = (factor: number, fastest = factor) => ({
  medianSeconds: factor * usual.medianSeconds,
  fastestSeconds: fastest * usual.fastestSeconds,
});

/** Hosts node0 ... of two ranks each, and all ways between them. */
function compared(
  count: number,
  {
    link = () => usual,
    own = () => usual,
  }: {
    link?: (one: number, other: number) => typeof usual;
    own?: (host: number) => typeof usual;
  } = {},
) {
  const hosts = Array.from({ length: count }, (_, at) => ({
    host: `node${at}`,
    ranks: [2 * at, 2 * at + 1],
    own: own(at),
  }));
  const links = hosts.flatMap((_, one) =>
    hosts.flatMap((__, other): LinkSeconds[] =>
      one < other ? [{ between: [one, other], ...link(one, other) }] : [],
    ),
  );
  return compareHosts(hosts, links, 2 ** 20, 'host');
}

describe('hosts beside one another', () => {
  it('are alike where nothing is half as slow again', () => {
    const comparison = compared(4, {
      link: (one, other) => times(one === 1 && other === 2 ? 1.46 : 1),
      own: (host) => times(host === 3 ? 1.3 : 1),
    });
    expect(comparison.slowestHost).toMatchObject({ host: 'node3', by: 'copies', standsOut: false });
    expect(comparison.slowestLink).toMatchObject({ hosts: ['node1', 'node2'], standsOut: false });
    expect(hostLines(comparison)).toEqual([
      'slowest host: no host stands out (at most node3, 1.3 times the median of the other hosts in copies of its own ' +
        'memory; below 1.5 times, in the median and in the fastest, it may be chance)',
      expect.stringMatching(/^slowest link: no link .*\bnode1 - node2, 1\.46 times /),
    ]);
  });

  it('are alike within five deviations of four others or more', () => {
    const of = (seconds: number) => ({ medianSeconds: seconds, fastestSeconds: seconds });
    const level = (one: number, others: number[]) => beside(of(one), others.map(of))?.level;
    expect([9.41, 9.42].map((one) => level(one, [1, 2, 3, 4]))).toEqual(['good', 'poor']);
    expect(level(4, [1, 2, 3])).toBe('poor');
  });

  it('are alike where one was disturbed and fast once', () => {
    const { slowestHost, slowestLink } = compared(4, {
      link: (one, other) => times(one === 0 && other === 3 ? 9 : 1, 1.1),
      own: (host) => times(host === 1 ? 5 : 1, 1),
    });
    expect(slowestHost?.standsOut).toBe(false);
    expect(slowestLink?.standsOut).toBe(false);
  });

  it('name a slow way, without a host for it', () => {
    for (const count of [3, 4, 5]) {
      const { slowestHost, slowestLink } = compared(count, {
        link: (one, other) => times(one === 0 && other === 2 ? 8 : 1),
      });
      expect(slowestHost?.standsOut).toBe(false);
      expect(slowestLink).toMatchObject({
        hosts: ['node0', 'node2'],
        standsOut: true,
        asAllOf: null,
      });
      expect(slowestLink?.times).toBeCloseTo(8);
    }
  });

  it('name a host all of whose ways are slow', () => {
    const comparison = compared(4, {
      link: (one, other) => times([one, other].includes(3) ? 2.5 + one / 10 : 1),
    });
    expect(comparison.slowestLink).toMatchObject({ hosts: ['node2', 'node3'], asAllOf: 'node3' });
    expect(hostLines(comparison)[0]).toBe(
      'slowest host: node3 (ranks 6 to 7), 2.6 times the median of the other hosts in messages with the others',
    );
    expect(hostLines(comparison)[1]).toMatch(/; all links .*\bnode3\b/);
  });

  it('name the one of two that copies slowly; their one way tells nothing', () => {
    const comparison = compared(2, { own: (host) => times(host === 1 ? 1.8 : 1) });
    expect(comparison.slowestLink).toMatchObject({ times: null, standsOut: false });
    expect(compared(2, { own: () => undefined as never }).slowestHost).toBeNull();
    expect(hostLines(comparison)).toEqual([
      'slowest host: node1 (ranks 2 to 3), 1.8 times that of the other host in copies of its own memory',
      expect.stringMatching(/^slowest link: node0 - node1 .*\bonly\b/),
    ]);
  });

  it('put one that stands out before one that was disturbed more', () => {
    const { slowestHost } = compared(4, {
      own: (host) => (host === 0 ? times(7, 1) : times(host === 2 ? hostMargin + 0.1 : 1)),
    });
    expect(slowestHost).toMatchObject({ host: 'node2', standsOut: true });
  });

  it('keep the slowest ways of many hosts only', () => {
    const { linkCount, slowestLinks } = compared(20, {
      link: (one, other) => times(1 + (one + other) / 1000),
    });
    expect(linkCount).toBe(190);
    expect(slowestLinks).toHaveLength(64);
    // A mebibyte there and back.
    expect(slowestLinks[0]).toMatchObject({
      hosts: ['node18', 'node19'],
      bytesPerSecond: expect.closeTo(2 ** 21 / 1.037e-3, 0) as number,
    });
  });
});
