// What keeps a process of a job that mpirun or srun started, in this process: its place and status, heartbeats, and what
// it leaves on its host.
import { EventEmitter } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { frameTypes } from '../../lib/launch/frames.js';
import { keep } from '../../lib/launch/keeper.js';
import { Launcher, ManInTheMiddle } from '../support/control-lines.js';
import { folderOfEachTest } from '../support/folders.js';
import { until } from '../support/launching.js';

let folder = '';
folderOfEachTest((made) => (folder = made));
let launcher: Launcher;
const open: { close(): void }[] = [];
const hosts = ['a', 'b', 'b', 'b'];
beforeEach(async () => {
  // Rank 2 is the second worker of its host; the last process there is a server.
  launcher = await Launcher.open(3, { servers: 1, hosts, graceMs: 5000, silenceMs: 600_000 });
  open.push(launcher.control);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const one of open.splice(0)) one.close();
});

/** Rank 2 of the job runs a shell command. */
function kept(script: string, { port = launcher.port, ...more }: Record<string, unknown> = {}) {
  const env = {
    PATH: process.env.PATH,
    OMPI_COMM_WORLD_RANK: '2',
    GRADLINK_JOB: launcher.secret,
    GRADLINK_LAUNCHER: `127.0.0.1:${String(port)}`,
    GRADLINK_NUM_WORKERS: '3',
    GRADLINK_NUM_SERVERS: '1',
    GRADLINK_BIND_TO: 'none',
    ...more,
  } as Record<string, string>;
  return keep(['sh', '-c', script], env, new EventEmitter() as never);
}
const untilGo = () => `until [ -e ${folder}/go ]; do sleep 0.02; done`;
/** Confirms what has ended, as a launcher does once it has ended the others. */
async function confirmed(): Promise<void> {
  await launcher.until(() => launcher.endings.length > 0);
  launcher.control.release();
}

describe('a kept process', () => {
  it('is told its place among the workers of its host, and nothing of keepers', async () => {
    const script =
      'echo $GRADLINK_ROLE $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE ${GRADLINK_LAUNCHER-none}';
    expect(await kept(script)).toBe(0);
    await launcher.until(() => launcher.stdout.endsWith('\n'));
    expect(launcher.stdout).toBe('worker 2/3 1/2 none\n');
    expect(launcher.endings).toMatchObject([{ exitCode: 0, member: { role: 'worker', index: 2 } }]);
  });

  it.each([
    ['exit 3', 3, 'exited'],
    ['kill -SEGV $$', 139, 'killed'],
  ])(
    'that ends by %s gives status %d to the launcher, and to mpirun if that has gone',
    async (script, exitCode, manner) => {
      const seen = kept(script);
      await confirmed();
      expect(launcher.endings).toMatchObject([{ exitCode, manner }]);
      expect(await seen).toBe(0);

      launcher = await Launcher.open(3);
      open.push(launcher.control);
      const alone = kept(script);
      await launcher.until(() => launcher.endings.length > 0);
      launcher.control.close();
      expect(await alone).toBe(exitCode);
    },
  );

  it('is ended where the launcher hangs up', async () => {
    const running = kept('echo up; exec sleep 600');
    await launcher.until(() => launcher.stdout !== '');
    launcher.control.close();
    expect(await running).toBe(143);
  });

  it('beats five times in a silence, as the launcher does', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    let beats = 0;
    const man = await ManInTheMiddle.open(launcher.port, (frame, from) => {
      if (from === 'keeper' && frame[4] === frameTypes.indexOf('beat')) beats += 1;
      return { on: [frame] };
    });
    open.push(man);
    const running = kept(`echo up; ${untilGo()}`, { port: man.port });
    const { heard } = await launcher.keeper(0);
    await launcher.until(() => launcher.stdout !== '');
    vi.advanceTimersByTime(600_000);
    writeFileSync(join(folder, 'go'), '');
    expect(await running).toBe(0);
    launcher.control.end('all');
    await until(() => heard.includes('end'));
    expect([beats, heard.filter((type) => type === 'beat').length]).toEqual([5, 5]);
  });
});

describe('on its host', () => {
  const shared = '/dev/shm';
  const segment = (rank: number): string =>
    `vader_segment.test.0.${process.pid.toString(16)}.${rank}`;
  afterEach(() => {
    for (const rank of [2, 3]) rmSync(join(shared, segment(rank)), { force: true });
  });

  it('leaves no segment of its rank, and those of others', async () => {
    for (const rank of [2, 3]) writeFileSync(join(shared, segment(rank)), '');
    await kept('true', { PMIX_NAMESPACE: String(process.pid) });
    const left = readdirSync(shared).filter((name) => name.startsWith('vader_segment.test.'));
    expect(left).toEqual([segment(3)]);
  });

  it.each([false, true])('leaves the folder of a daemon that is there, gone: %s', async (gone) => {
    const session = join(folder, 'ompi.host.0', 'pid.17');
    mkdirSync(session, { recursive: true });
    const parent = process.ppid;
    const running = kept(`echo up; ${untilGo()}`, {
      PMIX_SERVER_TMPDIR: join(session, '0'),
    });
    await launcher.until(() => launcher.stdout !== '');
    if (gone) {
      vi.spyOn(process, 'ppid', 'get').mockReturnValue(parent + 1);
      await confirmed();
      expect(launcher.endings).toMatchObject([{ exitCode: 143, manner: 'ended' }]);
    } else writeFileSync(join(folder, 'go'), '');
    expect(await running).toBe(0);
    expect(existsSync(session)).toBe(!gone);
  });
});
