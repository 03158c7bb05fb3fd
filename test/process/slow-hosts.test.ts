// Three hosts that are network namespaces, each two with a link of their own: the slow ones are named.
import { execFile } from 'node:child_process';

import { afterEach, beforeEach, expect, it } from 'vitest';

import type { HostsComparison } from '../../lib/results/hosts.js';
import { makeHosts, netns, noHosts, removeHosts, slowLink } from '../support/hosts.js';
import { gradlink, missing } from '../support/launching.js';
import { freePort, placeOf } from '../support/tcp.js';

const name = `gs${String(process.pid % 100_000)}`;
const reason = noHosts() ?? missing(['tc'], true);
const size = 3;
let address = '';

beforeEach(() => {
  if (reason === undefined) [address = ''] = makeHosts(name, size);
});
afterEach(() => {
  if (reason === undefined) removeHosts(name);
});

/** Runs a command as a job with a rank on each host; what rank 0 printed. */
async function onHosts(...args: readonly string[]): Promise<string> {
  const port = await freePort();
  const outputs = Array.from({ length: size }, (_, rank) => {
    const env = {
      ...process.env,
      ...placeOf(rank, size, port, address),
      LOCAL_RANK: '0',
      LOCAL_WORLD_SIZE: '1',
    };
    const command = ['enter', `${name}-${'abc'.charAt(rank)}`, process.execPath, gradlink, ...args];
    return new Promise<string>((resolve, reject) => {
      execFile(netns, command, { env }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`rank ${rank}: ${stderr}`));
      });
    });
  });
  const [first = '', ...others] = await Promise.all(outputs);
  expect(others).toEqual(['', '']);
  return first;
}

const sweep = ['collectives', 'all_reduce', '-b', '1K', '-e', '1K', '-n', '3', '--json'];

const hostsIn = (json: string): HostsComparison =>
  (JSON.parse(json) as { hosts: HostsComparison }).hosts;

it('a sweep names the slow link, and no host for it', async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  slowLink(name, 'a', 'c', '50mbit');
  const { hosts, linkCount, slowestLink, slowestLinks } = hostsIn(await onHosts(...sweep));
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
  const { slowestHost, slowestLink } = hostsIn(await onHosts(...sweep));
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
  const printed = await onHosts('p2p', '-b', '1', '--samples', '15');
  expect(printed).toMatch(/^between_hosts: /m);
  expect(printed).toMatch(/^ {2}GB\/s +gs\d+-b +gs\d+-c$/m);
  expect(printed).toMatch(/^# slowest host: no host .*\(/m);
  expect(printed).toMatch(/^# slowest link: no link .*\(/m);
});
