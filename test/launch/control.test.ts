// The launcher's port: what strangers may do, and that nothing which a keeper and a launcher say can be tampered with.
import { networkInterfaces } from 'node:os';
import { connect, createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';

import { afterEach, describe, expect, it, vi } from 'vitest';

import { callLauncher } from '../../lib/launch/keeper.js';
import { errorWith } from '../support/errors.js';
import { readNetwork } from '../../lib/network.js';
import {
  closed,
  Launcher,
  ManInTheMiddle,
  onFrames,
  type Meddling,
} from '../support/control-lines.js';

const open: { close(): void }[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const each of open.splice(0)) each.close();
});

async function launcherOf(workers: number): Promise<Launcher> {
  const launcher = await Launcher.open(workers);
  open.push(launcher.control);
  return launcher;
}

/** A keeper behind a man in the middle. */
async function tampered(launcher: Launcher, meddle: Meddling) {
  const man = await ManInTheMiddle.open(launcher.port, meddle);
  open.push(man);
  return await launcher.keeper(0, man.port);
}

it('refuses more processes than it has descriptors for, before anything is started', async () => {
  await expect(Launcher.open(2 ** 31)).rejects.toThrow(errorWith('ERR_SYSTEM', /2147483648 /));
});

describe('strangers', () => {
  it('may send 4 KiB before a proof and no more', async () => {
    const launcher = await launcherOf(1);
    const socket = launcher.stranger();
    // A hello that would be 4 MiB, a kilobyte at a time.
    const head = Buffer.from([0, 0, 0x40, 0, 1]);
    socket.write(Buffer.concat([head, Buffer.alloc(1000)]));
    await closed(socket);
    const dribbling = launcher.stranger();
    dribbling.write(Buffer.from([0, 16, 0, 0, 1]));
    for (let i = 0; i < 5; ++i) dribbling.write(Buffer.alloc(1000));
    await closed(dribbling);
    await launcher.keeper(0);
  });

  it('have 5 s for a proof, however often they send a byte', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const launcher = await launcherOf(1);
    const socket = launcher.stranger();
    const challenged = once(socket, 'data');
    await challenged;
    for (let second = 1; second < 5; ++second) {
      socket.write(Buffer.from([0]));
      vi.advanceTimersByTime(1000);
    }
    expect(socket.closed).toBe(false);
    vi.advanceTimersByTime(1000);
    await closed(socket);
  });

  it('are dropped, the oldest first, when there are too many', async () => {
    const launcher = await launcherOf(2);
    const sockets = Array.from({ length: 100 }, () => launcher.stranger());
    const gone = sockets.map(closed);
    // Two more for the keepers, while they are strangers.
    await Promise.all(gone.slice(0, 34));
    for (const place of [1, 0]) await launcher.keeper(place);
    await Promise.all(gone.slice(0, 36));
    expect(sockets.slice(36).filter((each) => each.closed)).toEqual([]);
    expect(launcher.started).toMatchObject([{ index: 1, host: 'elsewhere' }, { index: 0 }]);
  });

  it('are counted until all processes have come', async () => {
    const launcher = await launcherOf(2);
    await launcher.keeper(0);
    const sockets = Array.from({ length: 70 }, () => launcher.stranger());
    await Promise.all(sockets.slice(0, 5).map(closed));
    expect(launcher.control.crowd).toBe(70);
    await launcher.keeper(1);
    expect(launcher.control.crowd).toBe(0);
  });

  it('that make a launcher hang up on a keeper for a while do not keep it away', async () => {
    const launcher = await launcherOf(1);
    let left = 12;
    const door = createServer((socket) => {
      left -= 1;
      if (left >= 0) socket.destroy();
      else socket.pipe(launcher.stranger()).pipe(socket);
    });
    await once(door.listen(0, '127.0.0.1'), 'listening');
    open.push(door);
    const { port } = door.address() as AddressInfo;
    const env = {
      GRADLINK_JOB: launcher.secret,
      GRADLINK_LAUNCHER: `127.0.0.1:${String(port)}`,
    };
    const { socket } = await callLauncher(env, 0);
    expect(launcher.started).toMatchObject([{ index: 0 }]);
    socket.destroy();
  });

  it('of other hosts find no port where all of the job is on this one', async ({ skip }) => {
    const launcher = await launcherOf(1);
    expect(launcher.control.address).toMatch(/^127\.0\.0\.1:\d+$/);
    const outer = Object.values(networkInterfaces())
      .flatMap((each) => each ?? [])
      .find(({ internal, family }) => !internal && family === 'IPv4');
    if (outer === undefined) return skip('this host has no address but its loopback');
    const socket = connect({ host: outer.address, port: launcher.port });
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
  });

  it('find it on loopback too where nothing says where it listens', async () => {
    const launcher = await Launcher.open(1, { ownHost: false });
    open.push(launcher.control);
    const { address } = launcher.control;
    expect(address.split(/[,:]/)).toContain('127.0.0.1');
    const { socket } = await callLauncher(
      { GRADLINK_JOB: launcher.secret, GRADLINK_LAUNCHER: `127.0.0.1:${launcher.port}` },
      0,
    );
    socket.destroy();
  });

  it('find the launcher where GRADLINK_INTERFACE and GRADLINK_PORTS say, and nowhere else', async () => {
    const other = createServer().listen(0, '127.0.0.7');
    open.push(other);
    await once(other, 'listening');
    const { port: taken } = other.address() as AddressInfo;
    const env = {
      GRADLINK_INTERFACE: '127.0.0.7',
      GRADLINK_PORTS: `${taken}-${Math.min(taken + 50, 65_535)}`,
    };
    const launcher = await Launcher.open(1, { ownHost: false, network: readNetwork(env) });
    open.push(launcher.control);
    expect(launcher.control.address).toBe(`127.0.0.7:${launcher.port}`);
    expect(launcher.port).toBeGreaterThan(taken);
    expect(launcher.port).toBeLessThanOrEqual(taken + 50);
    const [error] = (await once(launcher.stranger(), 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNREFUSED');
    const told = { ...env, GRADLINK_JOB: launcher.secret };
    const where = { ...told, GRADLINK_LAUNCHER: launcher.control.address };
    const { socket } = await callLauncher(where, 0);
    socket.destroy();
    // A keeper on a host that is not in the network says so, and tries nothing.
    const nowhere = { ...where, GRADLINK_INTERFACE: 'none0' };
    await expect(callLauncher(nowhere, 0)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
  });

  it('with another secret are no keepers', async () => {
    const launcher = await launcherOf(1);
    const other = await launcherOf(1);
    await expect(other.keeper(0, launcher.port)).rejects.toThrow('hung up');
    expect(launcher.started).toEqual([]);
  });
});

describe('lines', () => {
  it('carry frames both ways', async () => {
    const launcher = await launcherOf(1);
    const keeper = await tampered(launcher, (frame) => ({ on: [frame] }));
    keeper.line.write('stdout', Buffer.from('one'));
    keeper.line.write('stdout', Buffer.alloc(100_000, '.'));
    keeper.line.write('exit', { exitCode: 3, what: 'exited', manner: 'exited' });
    await launcher.until(() => launcher.endings.length > 0);
    expect(launcher.endings).toMatchObject([{ exitCode: 3, manner: 'exited' }]);
    expect(launcher.stdout).toBe(`one${'.'.repeat(100_000)}`);
    launcher.control.end('all');
    launcher.control.release();
    await vi.waitFor(() => {
      expect(keeper.heard).toEqual(['welcome', 'end', 'seen']);
    });
  });

  it('tell how a process died even where its keeper is killed over it', async () => {
    const launcher = await launcherOf(3);
    const death = { pid: 7, exitCode: 137, what: 'was killed by SIGKILL', manner: 'killed' };
    const [first, second] = [await launcher.keeper(0), await launcher.keeper(1)];
    first.line.write('died', death);
    first.socket.end();
    await launcher.until(() => launcher.endings.length === 1);
    expect(launcher.endings[0]).toMatchObject({
      exitCode: 137,
      manner: 'killed',
      member: { pid: 7 },
    });
    // One that lives tells at the end, once.
    second.line.write('died', { ...death, pid: 8 });
    second.line.write('exit', { ...death, pid: 8 });
    second.socket.end();
    await launcher.until(() => launcher.endings.length === 2);
    await closed(second.socket);
    expect(launcher.endings.map(({ member }) => member.pid)).toEqual([7, 8]);
    // One that ended well may go at once.
    const third = await launcher.keeper(2);
    third.line.write('exit', { exitCode: 0, what: 'exited', manner: 'exited' });
    await vi.waitFor(() => {
      expect(third.heard).toEqual(['welcome', 'seen']);
    });
  });

  it('tell servers alone to end, then all', async () => {
    const launcher = await Launcher.open(1, { servers: 1 });
    open.push(launcher.control);
    const [worker, server] = [await launcher.keeper(0), await launcher.keeper(1)];
    launcher.control.end('servers');
    launcher.control.end('all');
    await vi.waitFor(() => {
      expect([worker.heard, server.heard]).toEqual([
        ['welcome', 'end'],
        ['welcome', 'end', 'end'],
      ]);
    });
  });

  describe('that are silent', () => {
    const silent = async (silenceMs: number) => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
      const launcher = await Launcher.open(1, { silenceMs });
      open.push(launcher.control);
      return { launcher, keeper: await launcher.keeper(0) };
    };

    it('are given up, and the process is lost', async () => {
      const { launcher } = await silent(1000);
      vi.advanceTimersByTime(1000);
      expect(launcher.endings).toEqual([]);
      vi.advanceTimersByTime(200);
      await launcher.until(() => launcher.endings.length > 0);
      expect(launcher.endings).toMatchObject([{ manner: 'lost', member: { index: 0 } }]);
      expect(launcher.control.silent).toMatchObject([{ index: 0 }]);
    });

    it('are not while nobody reads them', async () => {
      const { keeper } = await silent(60_000);
      const gone = vi.fn();
      keeper.line.watchSilence(1000, gone);
      keeper.socket.pause();
      vi.advanceTimersByTime(5000);
      expect(gone).not.toHaveBeenCalled();
      keeper.socket.resume();
      vi.advanceTimersByTime(1200);
      expect(gone).toHaveBeenCalled();
    });

    it('since they were asked to end are named, until they are heard', async () => {
      const { launcher, keeper } = await silent(60_000);
      vi.advanceTimersByTime(1);
      launcher.control.end('all');
      expect(launcher.control.silent).toMatchObject([{ index: 0 }]);
      keeper.line.write('stdout', Buffer.from('still here'));
      await launcher.until(() => launcher.stdout !== '');
      expect(launcher.control.silent).toEqual([]);
    });
  });

  const sent = 6;
  const meddlings: readonly (readonly [string, (frame: Buffer, before: Buffer) => Buffer[]])[] = [
    ['altered in its payload', (frame) => [flipped(frame, 7)]],
    ['altered in its type', (frame) => [flipped(frame, 4)]],
    ['altered in its seal', (frame) => [flipped(frame, frame.length - 1)]],
    ['repeated', (frame) => [frame, frame]],
    ['sent in place of the next', (_, before) => [before]],
    ['left out', () => []],
    ['of no length', () => [Buffer.alloc(5)]],
    ['of 4 GiB', () => [Buffer.from([255, 255, 255, 255, 3])]],
  ];

  it.each(meddlings)('end with an error when a frame of theirs is %s', async (_, meddle) => {
    const launcher = await launcherOf(1);
    let before: Buffer = Buffer.alloc(0);
    const keeper = await tampered(launcher, (frame, from, number) => {
      const on = from === 'keeper' && number === 3 ? meddle(frame, before) : [frame];
      if (from === 'keeper') before = frame;
      return { on };
    });
    for (let i = 0; i < sent; ++i) keeper.line.write('stdout', Buffer.from(`line ${String(i)}\n`));
    await launcher.until(() => launcher.endings.length > 0);
    expect(launcher.endings).toMatchObject([
      { manner: 'lost', what: expect.stringContaining('not authentic') as string },
    ]);
    // What came before is whole, and nothing came after.
    expect(launcher.stdout).toMatch(/^line 0\nline 1\n(line 2\n)?$/);
  });

  it.each(['launcher', 'keeper'] as const)(
    'end when what the %s says is sent back to it',
    async (side) => {
      const launcher = await launcherOf(1);
      const keeper = await tampered(launcher, (frame, from, number) => ({
        on: [frame],
        back: from === side && number > 0 ? [frame] : [],
      }));
      keeper.line.write('stdout', Buffer.from('to be sent back'));
      if (side === 'keeper') {
        await closed(keeper.socket);
        expect(keeper.line.trouble).toMatch('not authentic');
      } else {
        await launcher.until(() => launcher.endings.length > 0);
        expect(launcher.endings[0]?.what).toMatch('not authentic');
      }
    },
  );

  it('are refused where the place was altered', async () => {
    const launcher = await launcherOf(2);
    const keeper = tampered(launcher, (frame, from) => {
      const text = frame.toString('latin1').replace('"place":0', '"place":1');
      return { on: [from === 'keeper' ? Buffer.from(text, 'latin1') : frame] };
    });
    await expect(keeper).rejects.toThrow('hung up');
    expect(launcher.started).toEqual([]);
  });

  it('are refused with the hello of another line', async () => {
    const launcher = await launcherOf(2);
    let hello: Buffer | undefined;
    await tampered(launcher, (frame, from, number) => {
      if (from === 'keeper' && number === 0) hello = Buffer.from(frame);
      return { on: [frame] };
    });
    const socket = launcher.stranger();
    const gone = closed(socket);
    onFrames(socket, () => socket.write(hello ?? ''));
    await gone;
    expect(launcher.started).toHaveLength(1);
  });

  it('know a place but once, and tell it which it is on its host', async () => {
    const launcher = await Launcher.open(2, { servers: 1, hosts: ['a', 'b', 'a'] });
    open.push(launcher.control);
    const env = { GRADLINK_JOB: launcher.secret, GRADLINK_LAUNCHER: launcher.control.address };
    const { socket, ...told } = await callLauncher(env, 2);
    expect(told).toMatchObject({ localRank: 1, localSize: 2, localWorkers: 1, graceMs: 1000 });
    for (const place of [2, -1, 3, 0.5]) {
      await expect(launcher.keeper(place)).rejects.toThrow('hung up');
    }
    socket.destroy();
  });
});

function flipped(frame: Buffer, at: number): Buffer {
  const altered = Buffer.from(frame);
  altered[at] = (altered[at] ?? 0) ^ 1;
  return altered;
}
