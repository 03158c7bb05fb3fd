// Hosts that are network namespaces, each two with a link of their own: what is slow or loses packets is named.
import { execFile, spawn } from 'node:child_process';

import { afterEach, beforeEach, expect, it } from 'vitest';

import type { HostsComparison } from '../../lib/results/hosts.js';
import type { MeasuredCase } from '../../lib/results/result.js';
import { makeHosts, netns, noHosts, removeHosts, shapeWay, slowLink } from '../support/hosts.js';
import { gradlink, missing } from '../support/launching.js';
import { parseReport } from '../support/measure.js';
import { freePort, placeOf } from '../support/tcp.js';

const name = `gs${String(process.pid % 100_000)}`;
const reason = noHosts() ?? missing(['tc'], true);
const sides = 'abcd';
let address = '';

beforeEach(() => {
  if (reason === undefined) [address = ''] = makeHosts(name, sides.length);
});
afterEach(() => {
  if (reason === undefined) removeHosts(name);
});

/** Runs a command as a job with a rank on each of so many hosts; what rank 0 printed. */
async function onHosts(size: number, ...args: readonly string[]): Promise<string> {
  const port = await freePort();
  const outputs = Array.from({ length: size }, (_, rank) => {
    const env = {
      ...process.env,
      ...placeOf(rank, size, port, address),
      LOCAL_RANK: '0',
      LOCAL_WORLD_SIZE: '1',
    };
    const command = ['enter', `${name}-${sides.charAt(rank)}`, process.execPath, gradlink, ...args];
    return new Promise<string>((resolve, reject) => {
      execFile(netns, command, { env }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`rank ${rank}: ${stderr}`));
      });
    });
  });
  const [first = '', ...others] = await Promise.all(outputs);
  expect(others.join('')).toBe('');
  return first;
}

const sweep = ['collectives', 'all_reduce', '-b', '1K', '-e', '1K', '-n', '3', '--json'];

const hostsIn = (json: string): HostsComparison =>
  (JSON.parse(json) as { hosts: HostsComparison }).hosts;

it('a sweep names the slow link, and no host for it', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  slowLink(name, 'a', 'c', '50mbit');
  const { hosts, linkCount, slowestLink, slowestLinks } = hostsIn(await onHosts(3, ...sweep));
  expect(hosts.map(({ host, ranks }) => [host, ranks])).toEqual([
    [`${name}-a`, [0]],
    [`${name}-b`, [1]],
    [`${name}-c`, [2]],
  ]);
  expect(linkCount).toBe(3);
  expect(slowestLinks).toHaveLength(3);
  expect(slowestLink).toMatchObject({
    hosts: [`${name}-a`, `${name}-c`],
    standsOut: true,
    asAllOf: null,
  });
});

it('a sweep names the host all of whose links are slow', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  slowLink(name, 'a', 'b', '50mbit');
  slowLink(name, 'b', 'c', '50mbit');
  const { slowestHost, slowestLink } = hostsIn(await onHosts(3, ...sweep));
  expect(slowestHost).toMatchObject({
    host: `${name}-b`,
    ranks: [1],
    by: 'messages',
    standsOut: true,
  });
  expect(slowestLink?.asAllOf).toBe(`${name}-b`);
});

it('p2p measures between hosts, and says so where nothing stands out', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  // Links alike that are slower than what else runs on this machine makes them.
  for (const [a, b] of ['ab', 'ac', 'bc']) slowLink(name, a!, b!, '400mbit');
  const printed = await onHosts(3, 'p2p', '-b', '1', '--samples', '15');
  expect(printed).toMatch(/^between_hosts: /m);
  expect(printed).toMatch(/^ {2}GB\/s +gs\d+-b +gs\d+-c$/m);
  expect(printed).toMatch(/^# slowest host: no host .*\(/m);
  expect(printed).toMatch(/^# slowest link: no link .*\(/m);
});

const pairs = ['pairs', 'latency', 'bandwidth', '-e', '256K', '-W', '8', '--format', 'json'];

/** The ways and pairs that are called slow or lossy. */
function named(json: string): { readonly way: string; readonly one: MeasuredCase }[] {
  return parseReport(json).cases.flatMap((one) => {
    if (one.status !== 'ok') throw new Error(one.reason);
    const way = `${one.name} ${String(one.parameters.hosts).replaceAll(`${name}-`, '')}`;
    return ['fair', 'poor'].includes(one.verdict.level) ? [{ way, one }] : [];
  });
}

it('pairs name the one direction that is slow, and the way that loses packets', async ({
  skip,
}) => {
  if (reason !== undefined) skip(reason);
  shapeWay(name, 'c', 'b', 'rate', '50mbit');
  shapeWay(name, 'a', 'd', 'loss', 1);
  const found = named(await onHosts(4, ...pairs, '-b', '256K'));
  const direction = found.find(({ way }) => way === 'bandwidth c - b')?.one;
  expect(direction?.verdict.level).toBe('poor');
  expect(direction?.verdict.likelyCause).toMatch(/from \S+-c to \S+-b alone/);
  const lossy = found.find(({ way }) => way === 'bandwidth a - d')?.one;
  expect(lossy?.values?.retransmittedShare).toBeGreaterThan(0.005);
  expect(lossy?.verdict.likelyCause).toMatch(/packets .*-a and \S+-d/);
  const ways = new Set(found.map(({ way }) => way));
  for (const way of ['latency b - c', 'latency a - d', 'bandwidth d - a']) ways.delete(way);
  expect([...ways].sort()).toEqual(['bandwidth a - d', 'bandwidth c - b']);
});

it('pairs name nothing beside busy cores', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  const busy = Array.from({ length: 2 }, () => spawn(process.execPath, ['-e', 'for (;;);']));
  try {
    expect(named(await onHosts(3, ...pairs, '-b', '256', '-f', '1024'))).toEqual([]);
  } finally {
    for (const one of busy) one.kill('SIGKILL');
  }
});
