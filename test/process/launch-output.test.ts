// What passes through `gradlink launch`, and what becomes of a job whose terminal, disk or start fails.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { bearers, gradlink, Launches, marked, until } from '../support/launching.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';

let launches: Launches;
let scratch = '';
let program = '';

beforeAll(() => {
  launches = new Launches();
  scratch = launches.scratch;
  program = join(scratch, 'copy.cjs');
  // In pieces that cut characters and lines, each when the one before is through.
  writeFileSync(
    program,
    `const bytes = require('node:fs').readFileSync(process.argv[2] + '.' + process.env.GRADLINK_RANK);
     const out = process[process.argv[3]];
     let at = 0;
     const more = () => {
       if (at >= bytes.length) return;
       const piece = bytes.subarray(at, (at += at % 2 ? 1001 : 70_002));
       out.write(piece, more);
     };
     more();`,
  );
});
afterAll(() => launches.remove());

interface Raw {
  readonly status: number | null;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

const launchRaw = (args: readonly string[], before: readonly string[] = []): Raw => {
  const [first = '', ...rest] = [...before, process.execPath, gradlink, 'launch', ...args];
  return spawnSync(first, rest, { maxBuffer: 2 ** 28 });
};

/** The files that the ranks copy to a stream. */
function copied(contents: readonly Buffer[]): string {
  const base = join(mkdtempSync(join(scratch, 'copied-')), 'rank');
  contents.forEach((bytes, rank) => {
    writeFileSync(`${base}.${String(rank)}`, bytes);
  });
  return base;
}

/** All bytes, in an order that repeats after more than a piece. */
const allBytes = (length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8) * 7 + (i >> 16)) & 0xff));

describe('what a rank writes', () => {
  const line = Buffer.alloc(10 * 2 ** 20, 'é🙂\r');
  it.each([
    ['a line without an end', Buffer.from('abc')],
    ['nothing but ends of lines', Buffer.from('\n\n\r\n')],
    ['bytes that are no text, zeros among them', allBytes(300_000)],
    ['a line of 10 MiB', Buffer.concat([line, Buffer.from('\nend\n')])],
    ['a line of 10 MiB without an end', line],
    ['progress on one line', Buffer.from('\r 1 %\r 2 %\r\u001b[Kdone')],
  ])('arrives byte for byte: %s', (_, bytes) => {
    for (const name of ['stdout', 'stderr'] as const) {
      const base = copied([bytes]);
      const dir = mkdtempSync(join(scratch, 'dir-'));
      const args = ['-n', '1', '--output-dir', dir, process.execPath, program];
      const { status, ...streams } = launchRaw([...args, base, name]);
      expect(status).toBe(0);
      expect(streams[name].equals(bytes)).toBe(true);
      const file = join(dir, `rank-0.${name === 'stdout' ? 'out' : 'err'}`);
      expect(readFileSync(file).equals(bytes)).toBe(true);
    }
  });

  it('arrives byte for byte over mpirun too', () => {
    const script = `printf 'a\\0b\\377\\n\\r c'; printf d >&2`;
    const { stdout, stderr } = launchRaw(['-n', '1', '--launcher', 'mpi', 'sh', '-c', script]);
    expect(stdout.toString('latin1')).toBe('a\0b\xff\n\r c');
    expect(stderr.toString('latin1')).toBe('d');
  });

  it.each([[[]], [['--launcher', 'mpi']]])(
    'is in its file before its line ends, with %j',
    async (more) => {
      const dir = mkdtempSync(join(scratch, 'dir-'));
      const mark = launches.mark('read');
      const body = `printf abc; until [ -e ${mark} ]; do sleep 0.05; done`;
      const { ended } = launches.start(['-n', '1', ...more, '--output-dir', dir, 'sh', '-c', body]);
      const file = join(dir, 'rank-0.out');
      await until(() => existsSync(file) && readFileSync(file, 'utf8') === 'abc');
      writeFileSync(mark, '');
      expect(await ended).toMatchObject({ code: 0, stdout: 'abc' });
    },
  );

  it.each([[[]], [['--tag-output']]])('mixes by lines, however long, with %j', (more) => {
    const count = 5;
    const contents = [0, 1].map((rank) =>
      Buffer.concat(
        Array.from({ length: count }, (_, i) =>
          Buffer.from(`${'xy'[rank]!.repeat(rank + 2 ** (20 - 4 * i))}${String(i)}\n`),
        ).concat(Buffer.from(`last of ${String(rank)}`)),
      ),
    );
    const args = ['-n', '2', ...more, process.execPath, program, copied(contents), 'stdout'];
    const { status, stdout } = launchRaw(args);
    expect(status).toBe(0);
    // The last of all ends as it was written, the other rank's was ended where the next began.
    const whole = stdout.toString();
    const lines = whole.split('\n');
    const expected = contents.flatMap((bytes, rank) =>
      bytes
        .toString()
        .split('\n')
        .map((text) => (more.length > 0 ? `[${String(rank)}] ${text}` : text)),
    );
    expect(lines.sort().join() === expected.sort().join()).toBe(true);
  });

  it("is followed by the launcher's words on a line of their own", () => {
    const { status, stderr } = launchRaw(['-n', '1', 'sh', '-c', 'printf unended >&2; exit 3']);
    expect(status).toBe(3);
    expect(stderr.toString()).toMatch(/^unended\ngradlink launch: rank 0 .*\n$/);
  });
});

describe('a job goes on', () => {
  const script = 'for i in 1 2 3; do echo $i; echo $i >&2; done; echo > MARK$GRADLINK_RANK';
  const marking = (): { command: string[]; marked: () => boolean } => {
    const mark = launches.mark('rank');
    const command = ['sh', '-c', script.replace('MARK', mark)];
    return { command, marked: () => existsSync(`${mark}0`) && existsSync(`${mark}1`) };
  };

  it.each([
    ['standard output', '> /dev/full', 'stderr'],
    ['standard error', '2> /dev/full', undefined],
  ] as const)('where %s cannot be written, with one line and status 1', (_, to, told) => {
    const { command, marked } = marking();
    const shell = ['sh', '-c', `exec "$@" ${to}`, 'sh'];
    const { status, ...streams } = launchRaw(['-n', '2', ...command], shell);
    expect(status).toBe(1);
    expect(marked()).toBe(true);
    if (told === undefined) return;
    const lines = streams[told].toString().split('\n');
    expect(lines.filter((line) => line.startsWith('gradlink: cannot write'))).toHaveLength(1);
    expect(streams[told].toString()).not.toMatch(/ {4}at /);
  });

  it.each([[], ['--launcher', 'mpi', '--env', 'GRADLINK_MPI=openmpi']])(
    'and gets USR1 and USR2, %s',
    { tags: 'smoke' },
    async (...launcher) => {
      const mark = launches.mark('rank');
      const source = join(scratch, 'signals.cjs');
      const text = `const { writeFileSync } = require('node:fs');
      const { GRADLINK_RANK, OMPI_COMM_WORLD_RANK } = process.env;
      const rank = GRADLINK_RANK ?? OMPI_COMM_WORLD_RANK;
      const came = (name) => writeFileSync(${JSON.stringify(mark)} + name + rank, '');
      process.on('SIGUSR1', () => came('usr'));
      process.on('SIGUSR2', () => process.exit(0));
      setInterval(() => undefined, 1000);
      came('');`;
      writeFileSync(source, text);
      const { child, ended } = launches.start(['-n', '2', ...launcher, process.execPath, source]);
      await marked(mark, 2);
      child.kill('SIGUSR1');
      await marked(`${mark}usr`, 2);
      child.kill('SIGUSR2');
      expect(await ended).toMatchObject({ code: 0 });
    },
  );

  it('where a command cannot write its result, it says so', () => {
    const { status, stderr } = spawnSync(
      'sh',
      ['-c', 'exec "$@" > /dev/full', 'sh', process.execPath, gradlink, 'models', 'resnet'],
      { encoding: 'utf8' },
    );
    expect(status).toBe(1);
    expect(stderr).toMatch(/^gradlink: [^\n]*\n$/);
  });

  const full = it.skipIf(noSmallDisk !== undefined);
  full('where the disk of --output-dir is full', { tags: 'smoke' }, () => {
    const disk = new SmallDisk(65_536);
    try {
      disk.fill(0);
      const { command, marked } = marking();
      const args = ['-n', '2', '--output-dir', join(disk.folder), ...command];
      const { status, stdout, stderr } = launchRaw(args);
      expect(marked()).toBe(true);
      expect(status).toBe(1);
      expect(stdout.toString().split('\n')).toHaveLength(7);
      expect(stderr.toString().match(/--output-dir/g)).toHaveLength(1);
    } finally {
      disk.remove();
    }
  });

  it('fails in the end where a start before lost a part of its files', async () => {
    const mark = launches.mark('rank');
    // No file may be longer than 512 bytes: of the first start's output the rest is lost.
    const small = ['sh', '-c', 'ulimit -f 1; exec "$@"', 'sh'];
    const body = `[ $GRADLINK_RESTARTS = 0 ] || exit 0
      if [ $RANK = 0 ]; then printf %5000d 1; : > ${mark}0; sleep 600; fi
      until [ -e ${mark}0 ]; do sleep 0.05; done; kill -9 $$`;
    const directory = join(scratch, 'elastic');
    const args = ['-n', '2', '--elastic', '--output-dir', directory, 'sh', '-c', body];
    const { code, stderr } = await launches.run(args, { before: small });
    expect(existsSync(join(directory, 'restart-1', 'rank-0.out'))).toBe(true);
    expect(stderr).toMatch(/--output-dir: .*rank-0\.out/);
    expect(code).toBe(1);
  });

  it('under nohup, after its terminal has hung up', async () => {
    const mark = launches.mark('rank');
    const body = `touch ${mark}$GRADLINK_RANK; until [ -e ${mark}go ]; do sleep 0.05; done; echo finished`;
    const shell = ['sh', '-c', 'nohup "$@" & echo $! >&2; wait $!', 'sh'];
    const args = ['-n', '1', 'sh', '-c', body];
    const { ended, child } = launches.start(args, { before: shell });
    let pid = '';
    child.stderr?.on('data', (text) => (pid ||= String(text)));
    await until(() => existsSync(`${mark}0`));
    process.kill(Number.parseInt(pid, 10), 'SIGHUP');
    writeFileSync(`${mark}go`, '');
    expect(await ended).toMatchObject({ code: 0, stdout: 'finished\n' });
  });

  const python = spawnSync('python3', ['-c', 'import pty']).status === 0;
  it.skipIf(!python)('after its terminal has gone', async () => {
    const mark = launches.mark('rank');
    const body = `echo before; touch ${mark}0; until [ -e ${mark}go ]; do sleep 0.05; done; echo after; touch ${mark}1`;
    // The status of the launcher, whose terminal goes in the middle.
    const terminal = `import os, pty, subprocess, sys, time
m, s = pty.openpty()
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=s, stderr=s, start_new_session=True)
os.close(s)
while not os.path.exists('${mark}0'): time.sleep(0.02)
os.close(m)
open('${mark}go', 'w').close()
sys.exit(p.wait() % 256)`;
    const command = [process.execPath, gradlink, 'launch', '-n', '1', 'sh', '-c', body];
    const child = spawn('python3', ['-c', terminal, ...command], { stdio: 'ignore' });
    const code = await new Promise((resolve) => child.on('exit', resolve));
    expect(existsSync(`${mark}1`)).toBe(true);
    expect(code).toBe(0);
  });
});

describe('a job that cannot start', () => {
  it('leaves nothing running', async () => {
    const marker = `LAUNCH_TEST_MARKER=${String(process.pid)}-${String(Math.random()).slice(2)}`;
    const few = ['sh', '-c', 'ulimit -n 60; exec "$@"', 'sh'];
    const { code, stderr } = await launches.run(['-n', '30', 'sleep', '600'], {
      before: few,
      env: { LAUNCH_TEST_MARKER: marker.split('=')[1]! },
    });
    expect(code).toBe(126);
    expect(stderr).toMatch(/rank \d+ .*EMFILE/);
    expect(bearers(marker)).toEqual([]);
  });
});
