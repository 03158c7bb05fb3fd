// `gradlink check -H` on four hosts that are network namespaces: each fault is named, and nothing else.
import { spawn } from 'node:child_process';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { parseReport } from '../../lib/results/read-report.js';
import { blockLink, makeHosts, netns, noHosts, removeHosts, shapeWay } from '../support/hosts.js';
import { bearers, gradlink, until } from '../support/launching.js';

const name = `gc${String(process.pid % 100_000)}`;
const reason = noHosts();
const sides = ['a', 'b', 'c', 'd'] as const;
let addresses: readonly string[] = [];

beforeEach(() => {
  if (reason === undefined) addresses = makeHosts(name, sides.length);
});
afterEach(() => {
  if (reason === undefined) removeHosts(name);
});

const nameOf = (address: unknown): string => sides[addresses.indexOf(String(address))] ?? '';

/** What the check names: hosts, and ways from one to another. */
async function named(extra: readonly string[] = []): Promise<string[]> {
  const hosts = [...addresses, ...extra].join(',');
  const args = ['check', '-H', hosts, '--remote-shell', netns, '--parts', 'doctor', '--json'];
  const child = spawn(netns, ['enter', `${name}-a`, process.execPath, gradlink, ...args]);
  let printed = '';
  child.stdout.on('data', (chunk) => (printed += String(chunk)));
  await new Promise((resolve) => child.once('close', resolve));
  const { cases } = parseReport(printed, 'check');
  return cases
    .filter(({ status }) => status === 'error')
    .map(({ name: part, parameters: { host, from, to } }) =>
      part === 'host' ? nameOf(host) || String(host) : `${part} ${nameOf(from)} ${nameOf(to)}`,
    );
}

const others = (side: string): readonly string[] => sides.filter((one) => one !== side);

describe('a check of four hosts', () => {
  it.for([
    [
      'a host at a tenth',
      () => {
        for (const other of others('d')) {
          shapeWay(name, 'd', other, 'rate', '50mbit');
          shapeWay(name, other, 'd', 'rate', '50mbit');
        }
      },
      ['d'],
    ],
    ['one slow direction', () => shapeWay(name, 'a', 'c', 'rate', '50mbit'), ['bandwidth a c']],
    ['lost packets', () => shapeWay(name, 'b', 'c', 'loss', 1), ['latency b c']],
    ['a delay', () => shapeWay(name, 'b', 'd', 'delay', 20), ['latency b d']],
    [
      'closed ports of a host',
      () => {
        for (const other of others('c')) blockLink(name, 'c', other);
      },
      ['c'],
    ],
    ['closed ports between two', () => blockLink(name, 'b', 'c'), ['reach b c', 'reach c b']],
  ] as const)('names %s, and nothing else', async ([, make, expected], { skip }) => {
    if (reason !== undefined) skip(reason);
    make();
    expect(await named()).toEqual(expected);
  });

  it('names a host that is not there', async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    expect(await named(['10.77.250.9'])).toEqual(['10.77.250.9']);
  });

  it('names a host that is cut off in the middle, and goes on without it', async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const found = named();
    await until(() => bearers(`MASTER_ADDR=${addresses[0]!}`).length >= sides.length);
    for (const other of others('d')) blockLink(name, 'd', other);
    expect(await found).toEqual(['d']);
  });
});
