// The commands as users start them: the scripts of bench/, in processes of their own.
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { version } from '../../lib/version.js';
import { run } from '../support/gpu-commands.js';
import { parseReport } from '../support/measure.js';
import { words } from '../support/words.js';
import { folderOfAllTests } from '../support/folders.js';

const bench = new URL('../../bench/', import.meta.url).pathname;
let scratch = '';

folderOfAllTests((made) => (scratch = made));

describe('a report that another command writes', () => {
  it('is read from the pipe that the shell opens for it', async () => {
    const file = join(scratch, 'run.json');
    const gradlink = [process.execPath, join(bench, 'gradlink.js')];
    const sweep = ['collectives', 'all_reduce', '-b', '1K', '-e', '1K', '-n', '3', '--format'];
    const measured = await run(...(gradlink as [string]), ...sweep, 'json', '--output', file);
    expect(measured.code, measured.stderr).toBe(0);
    const script =
      '"$0" "$1" compare <(cat "$2") "$2" && cat "$2" | "$0" "$1" compare /dev/stdin "$2"';
    const { code, stderr } = await run('bash', '-c', script, ...gradlink, file);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe('another gradlink in the current folder', () => {
  let folder = '';
  beforeAll(() => {
    folder = join(scratch, 'foreign');
    // All that could be looked for: a checkout and its build, and installed packages.
    const places = ['.', 'node_modules/gradlink', 'node_modules/bindings'];
    places.push(`node_modules/@gradlink/${process.platform}-${process.arch}-gnu`);
    for (const place of places.map((one) => join(folder, one))) {
      for (const file of [
        'index.js',
        'gradlink.node',
        'bench/gradlink.js',
        'dist/launch-rank.js',
      ]) {
        mkdirSync(dirname(join(place, file)), { recursive: true });
        writeFileSync(
          join(place, file),
          `require('fs').writeFileSync(${JSON.stringify(join(folder, 'loaded'))}, '')`,
        );
      }
      const name = relative(join(folder, 'node_modules'), place);
      const manifest = { name: name === '..' ? 'gradlink' : name, version };
      writeFileSync(join(place, 'package.json'), JSON.stringify(manifest));
    }
  });

  it.each(['collectives', 'launch -n 2 gradlink collectives'])(
    'is not loaded by %s',
    async (by) => {
      const sweep = ['all_reduce', '-b', '1K', '-e', '1K', '-n', '2'];
      const gradlink = [join(bench, 'gradlink.js'), ...by.split(' '), ...sweep];
      const { code, stderr } = await run('env', '-C', folder, process.execPath, ...gradlink);
      expect(code, stderr).toBe(0);
      expect(existsSync(join(folder, 'loaded'))).toBe(false);
    },
  );
});

const smallNetwork = ['--network', 'mlp', '--image-shape', '1,28,28', '--cpus', '2'];

describe('the scripts of bench/', () => {
  it('measure.js runs the main job and ends by itself', async () => {
    // Started as a program: the executable bit and first line count too.
    const { code, stdout, stderr } = await run(join(bench, 'measure.js'), ...smallNetwork);
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/^INFO:root:.* arrays = 6\b/m);
    expect(stderr.match(/^INFO:root:iter /gm)).toHaveLength(5);
    expect(stdout).toContain('verdict');
  });

  it('collectives.js times a collective', { tags: 'smoke' }, async () => {
    const { code, stdout } = await run(
      join(bench, 'collectives.js'),
      ...words('all_reduce -b 1K -e 1K -n 3'),
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ +1024 +256 +float32 +sum /m);
  });

  it('without a build they say what to do', async () => {
    const copy = join(scratch, 'bench');
    cpSync(bench, copy, { recursive: true, filter: (path) => !path.includes('peers') });
    writeFileSync(join(scratch, 'package.json'), '{"type":"module"}');
    const { code, stderr } = await run(join(copy, 'measure.js'));
    expect(code).toBe(1);
    expect(stderr).toContain('npm run');
  });

  it('a reader that leaves early is no failure', async () => {
    const child = spawn(join(bench, 'gradlink.js'), ['models', '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.on('data', (chunk) => (stderr += String(chunk)));
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe('under gradlink launch', () => {
  it('collectives run over the processes, and rank 0 prints', { tags: 'smoke' }, async () => {
    const file = join(scratch, 'job.json');
    const { code, stdout, stderr } = await run(
      join(bench, 'gradlink.js'),
      ...['launch', '-n', '3', '--tag-output', process.execPath, join(bench, 'collectives.js')],
      ...[...words('all_reduce -b 8 -e 32K -f 64 --iters 2 -m 1 -J'), file, '-a', '3'],
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.every((line) => line.startsWith('[0] '))).toBe(true);
    const pids = [...stdout.matchAll(/Rank +\d Group +0 Pid +(\d+)/g)].map((match) => match[1]);
    expect(new Set(pids).size).toBe(3);
    expect(stdout).toMatch(/bounds values : 0 OK/);
  });

  it.each(['shm', 'tcp'])('pairs exchange messages over %s', { tags: 'smoke' }, async (backend) => {
    const quick = ['-b', '64K', '-e', '64K', '-i', '3', '-w', '1', '-W', '4', '--backend', backend];
    const { code, stdout, stderr } = await run(
      join(bench, 'gradlink.js'),
      ...['launch', '-n', '4', 'gradlink', 'pairs', ...quick, '--format', 'json'],
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { cases } = parseReport(stdout);
    for (const name of ['latency', 'bandwidth', 'bidirectional']) {
      const pairs = cases.filter((one) => one.name === name).map(({ parameters }) => parameters);
      expect(pairs).toHaveLength(name === 'bandwidth' ? 12 : 6);
      const upwards = pairs.filter(({ from, to }) => String(from) < String(to));
      expect(upwards.map(({ from, to }) => `${String(from)} ${String(to)}`)).toEqual([
        'rank 0 rank 1',
        'rank 0 rank 2',
        'rank 0 rank 3',
        'rank 1 rank 2',
        'rank 1 rank 3',
        'rank 2 rank 3',
      ]);
      for (const one of pairs) expect(one).toMatchObject({ backend, ranks: 4, bytes: 65536 });
    }
    expect(cases).toHaveLength(25);
    for (const one of cases) expect(one).toMatchObject({ status: 'ok', check: { wrong: 0 } });
  });

  it('a collective runs in groups at once, each with its figures', async () => {
    const sweep = ['all_reduce', '-b', '1K', '-e', '4K', '-f', '4', '--iters', '2', '-m', '1'];
    const job = (...more: string[]) =>
      run(
        'env',
        ...['NCCL_TESTS_SPLIT=AND 0x1', process.execPath, join(bench, 'gradlink.js')],
        ...['launch', '-n', '4', 'gradlink', 'collectives', ...sweep, ...more],
      );
    const text = await job();
    expect({ code: text.code, stderr: text.stderr }).toEqual({ code: 0, stderr: '' });
    const groups = [...text.stdout.matchAll(/^#  Rank +(\d) Group +(\d)/gm)];
    expect(groups.map(([, , group]) => group)).toEqual(['0', '1', '0', '1']);
    const rows = text.stdout.split('\n').filter((line) => /^ +\d/.test(line));
    expect(rows.map((line) => line.trim().split(/ +/).at(-1))).toEqual(['0', '0', '1', '1']);
    expect(text.stdout).toMatch(/^# Slowest group: (0 \(ranks 0, 2\)|1 \(ranks 1, 3\)),/m);
    // What is typed comes before the variable.
    const json = await job('--split', 'DIV:2', '--format', 'json');
    const { cases, run: told } = parseReport(json.stdout);
    expect(told.options).toMatchObject({ split: 'DIV:2', ranks: 4 });
    expect(cases.map(({ parameters: { group, ranks } }) => [group, ranks])).toEqual(
      [0, 0, 0, 0, 1, 1, 1, 1].map((group) => [group, 2]),
    );
    for (const one of cases) expect(one).toMatchObject({ status: 'ok', check: { wrong: 0 } });
    expect((await job('--split', 'OR:2')).code).toBe(0);
    const uneven = await job('--split', 'DIV:3');
    expect(uneven.code).toBe(2);
  });

  it('shared arrays and a number of ranks that contradicts the job', async () => {
    const command = (...args: string[]) =>
      run(
        join(bench, 'gradlink.js'),
        ...['launch', '-n', '2', process.execPath, join(bench, 'collectives.js')],
        ...args,
      );
    const shared = await command(
      'reduce_scatter',
      '-b',
      '64K',
      '-e',
      '64K',
      '--shared',
      '-n',
      '2',
      '--iters',
      '2',
    );
    expect(shared.code).toBe(0);
    const wrong = await command('reduce_scatter', '-n', '3');
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/-n\b.*\b2 ranks\b.*\b3\b/);
  });
});
