// What the doctor says of several hosts: compared, called, and over a remote shell.
import { chmodSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';

import { afterEach, describe, expect, it } from 'vitest';

import { hostFindings, type HostSeen } from '../../lib/doctor/hosts/compare.js';
import { counted, type HostFacts } from '../../lib/doctor/hosts/facts.js';
import { lookOverShell } from '../../lib/doctor/hosts/over-shell.js';
import { call, callAll, listen, othersOf, type Door } from '../../lib/doctor/hosts/reach.js';
import { shellCommand } from '../../lib/doctor/hosts/remote.js';
import { closed } from '../support/control-lines.js';
import { folderOfEachTest } from '../support/folders.js';

const facts: HostFacts = {
  gradlink: '0.1.0',
  node: 'v22.0.0',
  driver: '550.54',
  nccl: '2.28.3',
  openmpi: 'Open MPI v4.1.4',
  mpich: null,
  gpus: '8 x H100',
  processor: '64 cores, EPYC',
};

/** Hosts n1, n2, ... that reach one another. */
function hosts(count: number): HostSeen[] {
  const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
  return names.map((host) => ({
    host,
    facts,
    reached: names
      .filter((to) => to !== host)
      .map((to) => ({ to, roundTripMs: host === 'n2' ? 0.5 : 0.1, aheadMs: 1 })),
  }));
}

const named = (seen: readonly HostSeen[]) =>
  new Map(hostFindings(seen, []).map((finding) => [finding.name, finding]));

describe('hosts that are compared', () => {
  it('are alike, reach one another and have one time', () => {
    const found = hostFindings(hosts(3), []);
    expect(found.map(({ name, status }) => [name, status])).toEqual([
      ['hosts', 'ok'],
      ['hosts:alike', 'ok'],
      ['hosts:reach', 'ok'],
      ['hosts:clock', 'ok'],
    ]);
    expect(found[0]!.text).toBe('3 hosts: n1, n2, n3');
    expect(found[1]!.text).toMatch(/driver 550\.54, NCCL 2\.28\.3, .*MPI v4\.1\.4, GPUs 8 x H100/);
    expect(found[2]!.text).toContain('slowest n2 to n1, 0.50 ms');
  });

  it('have their differences named, what most have first', () => {
    const seen = hosts(4);
    seen[1] = { ...seen[1]!, facts: { ...facts, driver: '535.1', nccl: null } };
    seen[3] = { ...seen[3]!, facts: { ...facts, driver: '535.1', gpus: '7 x H100' } };
    const found = named(seen);
    expect(found.get('hosts:driver')).toMatchObject({
      status: 'degraded',
      text: '550.54 on n1, n3; 535.1 on n2, n4',
    });
    expect(found.get('hosts:nccl')?.text).toBe('2.28.3 on n1, n3, n4; none on n2');
    expect(found.get('hosts:gpus')?.text).toBe('8 x H100 on n1, n2, n3; 7 x H100 on n4');
    expect(found.has('hosts:node')).toBe(false);
  });

  it('that do not reach one another are named, one that nobody reaches once', () => {
    const seen = hosts(3);
    const error = '10.0.0.3: refused (TCP port 7)';
    seen[0] = {
      ...seen[0]!,
      reached: [
        { to: 'n2', error },
        { to: 'n3', roundTripMs: 1 },
      ],
    };
    expect(named(seen).get('hosts:reach')).toMatchObject({
      status: 'degraded',
      text: `n1 cannot reach n2 (${error})`,
    });
    const lost = hosts(3).map((one) => ({
      ...one,
      reached: one.reached.map((way) => (way.to === 'n3' ? { to: 'n3', error } : way)),
    }));
    expect(named(lost).get('hosts:reach')?.text).toBe(`no host reaches n3 (${error})`);
  });

  it('have clocks that are off named, but not for what the round trip may hide', () => {
    const seen = hosts(3);
    const reached = [
      { to: 'n2', roundTripMs: 0.2, aheadMs: -90_500 },
      { to: 'n3', roundTripMs: 400, aheadMs: 250 },
    ];
    seen[0] = { ...seen[0]!, reached };
    expect(named(seen).get('hosts:clock')).toMatchObject({
      status: 'degraded',
      text: 'compared with n1: n2 is 90.5 s behind',
    });
  });

  it('that could not be looked at have their reason', () => {
    const [found] = hostFindings(hosts(1), [
      { host: 'n2', reason: 'ended with status 255: No route' },
    ]);
    expect(found).toMatchObject({
      status: 'missing',
      text: '1 of 2 could be looked at; n2: ended with status 255: No route',
    });
  });

  it('count GPUs by their kind', () => {
    expect(counted(['A', 'B', 'A'])).toBe('2 x A, 1 x B');
    expect(counted([])).toBeNull();
  });
});

describe('hosts that are called', () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });
  const door = async (host = 'b'): Promise<Door> => {
    const listener = await listen();
    const { port, token } = listener;
    closing.push(() => {
      listener.close();
    });
    return { host, addresses: ['127.0.0.1'], port, token };
  };

  it('answer with their clock', async () => {
    // It is a day ahead: no machine stalls for so long.
    const day = 86_400_000;
    const clock = createServer((socket) => {
      socket.on('data', () => socket.write(`${String(Date.now() + day)}\n`));
    }).listen(0, '127.0.0.1');
    await once(clock, 'listening');
    closing.push(() => clock.close());
    const { port } = clock.address() as { port: number };
    const found = await call({ host: 'b', addresses: ['127.0.0.1'], port, token: 't' });
    expect(found.aheadMs! / day).toBeCloseTo(1, 2);
    expect((await call(await door())).aheadMs! / day).toBeCloseTo(0, 2);
  });

  it('are reached by any of their addresses', async () => {
    const one = { ...(await door()), addresses: ['no.such.host.invalid', '127.0.0.1'] };
    expect(await callAll([one, one])).toMatchObject([
      { to: 'b', roundTripMs: expect.any(Number) },
      { to: 'b' },
    ]);
  });

  it('say nothing to who does not know the token', async () => {
    const { port, ...rest } = await door();
    expect(await call({ ...rest, port, token: 'f'.repeat(32) })).toMatchObject({
      to: 'b',
      error: expect.any(String),
    });
    const flood = connect({ host: '127.0.0.1', port });
    let heard = '';
    flood.on('data', (chunk) => (heard += String(chunk))).on('error', () => undefined);
    flood.write('x'.repeat(100_000));
    await new Promise((resolve) => flood.once('close', resolve));
    expect(heard).toBe('');
  });

  it('hold 256 strangers and no more, of whom the oldest goes', async () => {
    const one = await door();
    const strangers = Array.from({ length: 300 }, () => connect({ ...one, host: '127.0.0.1' }));
    closing.push(() => {
      for (const each of strangers) each.destroy();
    });
    const gone = strangers.map(closed);
    await Promise.all(gone.slice(0, 44));
    expect(await call(one)).toMatchObject({ to: 'b', roundTripMs: expect.any(Number) as number });
    // One went for the call.
    await gone[44];
    expect(strangers.slice(45).filter((each) => each.closed)).toEqual([]);
  });

  it('are called in an order of their own by each, so that not all begin with one', () => {
    const doors = ['a', 'b', 'c'].map((host) => ({ host, addresses: [], port: 1, token: '' }));
    const called = (own: string) => othersOf(doors, own).map(({ host }) => host);
    expect(['a', 'b', 'c', 'd'].map(called)).toEqual([
      ['b', 'c'],
      ['c', 'a'],
      ['a', 'b'],
      ['a', 'b', 'c'],
    ]);
  });

  it('that refuse, hang or are not known are told apart', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    closing.push(() => silent.close());
    const { port } = silent.address() as { port: number };
    const hanging: Door = { host: 'b', addresses: ['127.0.0.1'], port, token: 't' };
    expect((await call(hanging, {}, 50)).error).toBe(
      `127.0.0.1: no answer within 0.05 s (TCP port ${port})`,
    );
    const gone = await door();
    closing.splice(-1)[0]!();
    expect((await call(gone)).error).toContain('127.0.0.1: refused');
    const unknown = { ...gone, addresses: ['no.such.host.invalid'] };
    expect((await call(unknown)).error).toContain('not known');
  });
});

describe('over a remote shell', () => {
  let folder = '';
  folderOfEachTest((made) => (folder = made));
  const shell = (script: string): string => {
    const file = join(folder, 'shell');
    writeFileSync(file, `#!/bin/sh\nhost=$1\nshift\n${script}\n`);
    chmodSync(file, 0o755);
    return file;
  };
  const env = process.env;

  it('hosts are seen, and call one another by the names of the hostfile', async () => {
    const file = shell('exec sh -c "$*"');
    const { seen, unseen } = await lookOverShell(['127.0.0.1', 'me@localhost'], file, env);
    expect(unseen).toEqual([]);
    expect(seen.map(({ host, reached }) => [host, reached.map(({ to }) => to)])).toEqual([
      ['127.0.0.1', ['me@localhost']],
      ['me@localhost', ['127.0.0.1']],
    ]);
    expect(seen.flatMap(({ reached }) => reached.map(({ error }) => error))).toEqual([
      undefined,
      undefined,
    ]);
    expect(seen[0]!.facts).toMatchObject({ node: process.version });
  });

  it('a host that cannot be entered is one with a reason, and the others are seen', async () => {
    const file = shell(
      '[ $host = n2 ] && { echo "n2: Permission denied" >&2; exit 255; }; exec sh -c "$*"',
    );
    const { seen, unseen } = await lookOverShell(['127.0.0.1', 'n2'], file, env);
    expect(seen.map(({ host }) => host)).toEqual(['127.0.0.1']);
    expect(unseen).toEqual([
      { host: 'n2', reason: 'ended with status 255: n2: Permission denied' },
    ]);
    const none = await lookOverShell(['n1'], join(folder, 'none'), env);
    expect(none.unseen).toMatchObject([
      { host: 'n1', reason: expect.stringContaining('ENOENT') as string },
    ]);
  });

  it('is ssh that asks for nothing, unless another is named', () => {
    expect(shellCommand('n1', undefined).slice(0, 6)).toEqual([
      ...['ssh', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=10', 'n1'],
    ]);
    const chosen = { GRADLINK_INTERFACE: 'eth0', GRADLINK_PORTS: '1-2', GRADLINK_JOB: 'secret' };
    expect(shellCommand('n1', undefined, chosen).at(-1)).toMatch(
      /^exec 'env' 'GRADLINK_INTERFACE=eth0' 'GRADLINK_PORTS=1-2' '\//,
    );
    expect(shellCommand('n1', 'ssh -p 2222').slice(0, 4)).toEqual(['ssh', '-p', '2222', 'n1']);
  });
});
