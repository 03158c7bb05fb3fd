// `gradlink launch` with real processes: what it passes on, and that nothing outlives a job however it ends.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { allowedCores, parseCoreList, shareCores } from '../../lib/launch/cores.js';
import { bearers as bearersOf, leaksOf, Launches, until } from '../support/launching.js';
import type { Ended, Started } from '../support/launching.js';
import { words } from '../support/words.js';

const launches = new Launches();
const { scratch } = launches;
afterAll(() => launches.remove());

const start = (args: readonly string[], marker?: string): Started =>
  launches.start(args, marker === undefined ? {} : { env: { LAUNCH_TEST_MARKER: marker } });

const launch = (...args: string[]): Promise<Ended> => launches.run(args);

/** Live processes that carry the marker in their environment: the job's, wherever they went. */
const bearers = (marker: string, except: readonly (number | undefined)[] = []): number[] =>
  bearersOf(`LAUNCH_TEST_MARKER=${marker}`, except);

/**
 * A job of two shells, each with a background process of its group and one of a session of its own; all of them are
 * there when it resolves. `MARKS` in `body` is a directory for marks.
 */
async function longJob(body: string, ...options: string[]) {
  const marker = `${String(process.pid)}-${String(Math.random()).slice(2)}`;
  const marks = mkdtempSync(join(scratch, 'marks-'));
  const script = `${body}; sleep 600 & setsid sleep 600 & touch MARKS/rank$GRADLINK_RANK; while :; do sleep 1; done`;
  const command = ['sh', '-c', script.replaceAll('MARKS', marks)];
  const job = start(['-n', '2', ...options, ...command], marker);
  const marked = (name: string): boolean => existsSync(join(marks, name));
  await until(() => marked('rank0') && marked('rank1'));
  // A shell, its sleeping child and the one it waits for, and the one of a session of its own: four a rank.
  await until(() => bearers(marker, [job.child.pid]).length === 8);
  return { ...job, marker, marked };
}

describe('what a job is given', () => {
  it('numbers the ranks in launch order, with one secret for all', { tags: 'smoke' }, async () => {
    const { code, stdout } = await launch(
      ...['-n', '3', '--env', 'COLOR=light blue', 'sh', '-c'],
      'echo "$GRADLINK_RANK/$GRADLINK_SIZE $GRADLINK_LOCAL_RANK/$GRADLINK_LOCAL_SIZE $COLOR $GRADLINK_JOB"',
    );
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n').sort();
    const secret = /[0-9a-f]{32}$/.exec(lines[0] ?? '')?.[0] ?? 'none';
    expect(lines).toEqual(
      [0, 1, 2].map((r) => `${String(r)}/3 ${String(r)}/3 light blue ${secret}`),
    );
  });

  it('gives each worker a GPU where it is asked to, and says which are shared', async () => {
    const run = (gpus: string) =>
      launches.run(['-n', '3', '--gpu-per-worker', 'sh', '-c', 'echo $CUDA_VISIBLE_DEVICES'], {
        env: { CUDA_VISIBLE_DEVICES: gpus },
      });
    const shared = await run('4,7');
    expect(shared.stdout.trimEnd().split('\n').sort()).toEqual(['4', '4', '7']);
    expect(shared.stderr).toMatch(/^gradlink launch: 2 workers .*GPU 4: .*\b2 GPUs; .*\.\n$/);
    expect((await run('1,GPU-8f2e,0')).stderr).toBe('');
    expect((await run('-1')).stderr).toBe(
      'gradlink launch: --gpus-per-worker: this host shows no GPU to give.\n',
    );
  });

  it('keeps its secret and its variables out of all that it writes', async () => {
    const { code, leaks, shown } = await leaksOf(launches, []);
    expect({ code, leaks }).toEqual({ code: 0, leaks: [] });
    expect(shown).toContain('GRADLINK_RANK');
  });

  it('leaves the options behind the command to the command', async () => {
    const program = 'console.log(process.argv.slice(1).join())';
    const { code, stdout } = await launch(
      ...words('-n 1 node -e'),
      program,
      ...words('x -n 5 --help'),
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'x,-n,5,--help\n' });
  });
});

describe('output', () => {
  it('refuses a folder for them where the system makes none', async () => {
    // As an automounter does: ENOENT, though the folder around is there. Node's recursive mkdir never returns then.
    const { code } = await launch('-n', '1', '--output-dir', '/proc/gradlink/logs', 'true');
    expect(code).toBe(2);
  });

  it('prints the commands of a dry run and starts nothing', async () => {
    const mark = join(scratch, 'dry');
    const { code, stdout } = await launch('-n', '2', '--dry-run', 'touch', mark, 'a b');
    expect(code).toBe(0);
    expect(stdout.trimEnd().split('\n')).toEqual(
      [0, 1].map((rank) =>
        expect.stringMatching(new RegExp(`GRADLINK_RANK=${String(rank)} .*touch ${mark} 'a b'$`)),
      ),
    );
    expect(stdout).toContain('GRADLINK_JOB=SECRET');
    expect(existsSync(mark)).toBe(false);
  });
});

describe('cores', () => {
  // Every thread of the rank, after it has come up.
  const listThreads = `
    const { readdirSync, readFileSync } = require('node:fs');
    const lists = readdirSync('/proc/self/task').map((task) =>
      /^Cpus_allowed_list:\\s*(\\S+)$/m.exec(readFileSync('/proc/self/task/' + task + '/status', 'utf8'))[1]);
    console.log(process.env.GRADLINK_RANK, [...new Set(lists)].join(' '));`;
  const ranks = 2;
  const listed = async (...options: string[]) => {
    const { stdout } = await launch(
      ...['-n', String(ranks), ...options, process.execPath, '-e', listThreads],
    );
    return stdout.trimEnd().split('\n').sort();
  };

  it('are shared out', async () => {
    const shares = shareCores(ranks, allowedCores());
    const lines = await listed();
    expect(
      lines.map((line) => line.split(' ').slice(1)).map((lists) => lists.map(parseCoreList)),
    ).toEqual(shares.map((share) => [share ?? allowedCores()]));
  });

  it('are left to the kernel with --bind-to none', async () => {
    const all = /^Cpus_allowed_list:\s*(\S+)$/m.exec(
      readFileSync('/proc/self/status', 'utf8'),
    )?.[1];
    expect(await listed('--bind-to', 'none')).toEqual([`0 ${String(all)}`, `1 ${String(all)}`]);
  });
});

describe('a failing rank', () => {
  it('ends the job with its status and shows its last lines', async () => {
    const script = 'if [ $GRADLINK_RANK = 1 ]; then echo last words >&2; exit 7; fi; sleep 600';
    const { code, stderr } = await launch('-n', '3', 'sh', '-c', script);
    expect(code).toBe(7);
    expect(stderr).toMatch(/rank 1 \(process \d+\).* status 7;/);
    expect(stderr.match(/last words/g)).toHaveLength(1);
  });

  it('gives 128 + the signal that killed it', { tags: 'smoke' }, async () => {
    const script = 'if [ $GRADLINK_RANK = 0 ]; then kill -SEGV $$; fi; sleep 600';
    const { code, stderr } = await launch('-n', '2', 'sh', '-c', script);
    expect(code).toBe(128 + 11);
    expect(stderr).toMatch(/rank 0 \(process \d+\).* SIGSEGV;/);
  });

  it('kills those that ignore SIGTERM after the grace time', { tags: 'smoke' }, async () => {
    const mark = join(scratch, 'ignores');
    const script = `if [ $GRADLINK_RANK = 0 ]; then until [ -e ${mark} ]; do sleep 0.05; done; exit 3; fi
      trap '' TERM; touch ${mark}; while :; do sleep 1; done`;
    const { child, ended } = start(['-n', '2', '--grace', '0.2', 'sh', '-c', script], mark);
    expect((await ended).code).toBe(3);
    expect(bearers(mark, [child.pid])).toEqual([]);
  });

  describe('with --elastic', () => {
    /** The last rank of the first two starts exits with an error, the others wait for it. */
    const script =
      'if [ $GRADLINK_RESTARTS = 2 ]; then echo $GRADLINK_SIZE left; exit; fi; ' +
      'if [ $GRADLINK_RANK = $((GRADLINK_SIZE - 1)) ]; then echo last words >&2; exit 7; fi; sleep 600';

    it('costs the job a worker', { tags: 'smoke' }, async () => {
      const { code, stdout, stderr } = await launch('-n', '4', '--elastic', 'sh', '-c', script);
      expect(stdout).toBe('2 left\n2 left\n');
      expect(stderr.match(/rank \d \(process \d+\).* status 7;/g)).toHaveLength(2);
      expect(stderr).toContain('3 workers (--elastic)');
      expect(stderr).toContain('2 workers (--elastic)');
      expect(code).toBe(0);
    });
  });
});

describe('nothing outlives a job', () => {
  it('at the second Ctrl-C, without the grace time', { tags: 'smoke' }, async () => {
    const { child, marker, marked, ended } = await longJob(
      `trap 'touch MARKS/asked' TERM`,
      '--grace',
      '600',
    );
    child.kill('SIGINT');
    await until(() => marked('asked'));
    child.kill('SIGINT');
    expect((await ended).code).toBe(130);
    expect(bearers(marker)).toEqual([]);
  });

  it('after the time limit, with 124', { tags: 'smoke' }, async () => {
    const { ended } = start(['-n', '2', '--timeout', '0.3', 'sleep', '600'], `${scratch}-limit`);
    const { code, stderr } = await ended;
    expect(code).toBe(124);
    expect(stderr).toContain('after 0.3 s (--timeout)');
    expect(bearers(`${scratch}-limit`)).toEqual([]);
  });

  it.each([[[]], [['--elastic']], [['-s', '1']], [['--launcher', 'mpi']]])(
    'after limits of more days than a timer has, with %j',
    async (more) => {
      const limits = ['--timeout', '2592000', '--grace', '1e308', '--host-timeout', '1e308'];
      const command = ['sh', '-c', 'sleep 0.3; echo done'];
      const { code, stdout, stderr } = await launch('-n', '1', ...limits, ...more, ...command);
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'done\n' });
      expect(stderr).not.toContain('Timeout');
    },
  );
});
