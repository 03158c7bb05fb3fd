// What Open MPI leaves in the folder for temporary files when its daemon is killed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { build } from 'esbuild';
import { expect, it } from 'vitest';

import { removeSession } from '../../lib/launch/leftovers.js';
import { startWatchdog } from '../../lib/launch/watchdog.js';
import { folderOfEachTest } from '../support/folders.js';
import { until } from '../support/launching.js';

let folder: string;
folderOfEachTest((made) => (folder = made));

function session(name: string): string {
  const path = join(folder, 'ompi.host.0', name);
  mkdirSync(join(path, '0'), { recursive: true });
  writeFileSync(join(path, '0', 'socket'), '');
  return path;
}
const remove = (path: string): void => {
  removeSession({ PMIX_SERVER_TMPDIR: join(path, '0') });
};

it('goes with the folder of all jobs', () => {
  remove(session('pid.17'));
  expect(existsSync(join(folder, 'ompi.host.0'))).toBe(false);
  expect(existsSync(folder)).toBe(true);
});

it('goes alone where another job is in that folder', () => {
  const other = session('pid.18');
  const own = session('pid.17');
  remove(own);
  expect([existsSync(own), existsSync(other)]).toEqual([false, true]);
  remove(other);
  expect(existsSync(join(folder, 'ompi.host.0'))).toBe(false);
});

it('is nothing where the folder of all jobs is a link', () => {
  const there = join(folder, 'there');
  mkdirSync(join(there, 'pid.17'), { recursive: true });
  symlinkSync(there, join(folder, 'ompi.host.0'));
  remove(join(folder, 'ompi.host.0', 'pid.17'));
  expect(existsSync(there)).toBe(true);
});

it('are looked after by a shell that gives them whole seconds', () => {
  const watchdog = startWatchdog('A=b', 1500, '/none');
  const read = (path: string) => readFileSync(`/proc/${path}`, 'utf8');
  const children = read(`self/task/${process.pid}/children`).trim().split(' ');
  const commands = children.map((pid) => read(`${pid}/cmdline`).split('\0'));
  expect(commands).toContainEqual(expect.arrayContaining(['gradlink-watchdog', '2', '/none']));
  watchdog.dismiss();
});

it('are removed by that shell where the launcher is killed, after processes that ignore SIGTERM', async () => {
  const entry = new URL('../../lib/launch/watchdog.ts', import.meta.url).pathname;
  const module = join(folder, 'watchdog.mjs');
  await build({
    entryPoints: [entry],
    outfile: module,
    bundle: true,
    platform: 'node',
    format: 'esm',
  });
  const scratch = session('pid.17');
  const mark = `LEFTOVERS_TEST=${folder}`;
  const member = spawn('sh', ['-c', `trap '' TERM; touch ${folder}/up; exec sleep 600`], {
    env: { ...process.env, LEFTOVERS_TEST: folder },
  });
  const ended = once(member, 'exit');
  await until(() => existsSync(join(folder, 'up')));
  const source = `import { startWatchdog } from ${JSON.stringify(module)};
    startWatchdog(${JSON.stringify(mark)}, 0, ${JSON.stringify(scratch)});
    setImmediate(() => process.kill(process.pid, 'SIGKILL'));`;
  spawn(process.execPath, ['--input-type=module', '-e', source]);
  expect(await ended).toEqual([null, 'SIGKILL']);
  await until(() => !existsSync(scratch));
});
