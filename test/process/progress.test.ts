// Bars of commands that run as several processes: the processes say how far they are, and only the one with the terminal
// draws. Of ranks other than 0, in files and in pipes nothing is seen.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { readProgress, type ProgressMessage } from '../../lib/cli/progress/messages.js';
import { gradlink } from '../support/cli.js';
import { folderOfAllTests } from '../support/folders.js';
import { missing } from '../support/launching.js';

const program = new URL('../../bench/gradlink.js', import.meta.url).pathname;
const sweep = ['collectives', 'all_reduce', '-b', '8', '-e', '256', '-f', '2', '-w', '1'];
const sizes = 6;
const job = ['launch', '-n', '2', process.execPath, program, ...sweep];
const bar = /[█░]+ (\d+)\/(\d+) (\w+)/g;

let folder = '';
folderOfAllTests((made) => (folder = made));

/** What the bars counted, in the order of drawing. */
function counts(text: string): { done: number; total: number; unit: string }[] {
  return [...text.matchAll(bar)].map(([, done, total, unit]) => ({
    done: Number(done),
    total: Number(total),
    unit: unit!,
  }));
}

/** Drawn as far as the end, and never back. */
function expectWhole(text: string, total: number, unit: string): void {
  const drawn = counts(text);
  expect(drawn[0]).toEqual({ done: 0, total, unit });
  expect(drawn.at(-1)).toEqual({ done: total, total, unit });
  expect(drawn.map(({ done }) => done)).toEqual(
    drawn.map(({ done }) => done).sort((a, b) => a - b),
  );
}

/** `gradlink ARGS` with a standard error that a process of the job could take for its own. */
function messagesOf(
  args: readonly string[],
): Promise<{ messages: ProgressMessage[]; rest: string }> {
  const env = { ...process.env, GRADLINK_PROGRESS: '1' };
  const child = spawn(process.execPath, [program, ...args], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr.on('data', (chunk) => (text += String(chunk)));
  return new Promise((resolve) => {
    child.on('close', () => {
      const lines = text.split('\n').slice(0, -1);
      const messages = lines.flatMap((line) => readProgress(Buffer.from(line)) ?? []);
      const others = lines.filter((line) => readProgress(Buffer.from(line)) === undefined);
      resolve({ messages, rest: others.join('\n') });
    });
  });
}

describe('a job', () => {
  it('has a bar where the process that starts it has a terminal', async () => {
    const { code, stdout, stderr } = await gradlink(job, { terminal: true });
    expect(code).toBe(0);
    expectWhole(stderr, sizes, 'sizes');
    expect(stdout).toMatch(/^# .* : 0 OK$/m);
    expect(counts(stdout)).toEqual([]);
    // Nothing but the bar: no message of a rank's.
    expect(stderr + stdout).not.toContain('progress');
  });

  it('has none elsewhere', async () => {
    const { stdout, stderr } = await gradlink(job);
    expect(stderr).toBe('');
    expect(stdout).not.toContain('progress');
  });

  it('says how far it is where it is asked, of rank 0 alone', async () => {
    const { messages, rest } = await messagesOf(job);
    expect(rest).toBe('');
    expect(messages[0]).toEqual({ done: 0, total: sizes, unit: 'sizes' });
    expect(messages.filter(({ over }) => over === true)).toEqual([
      { done: sizes, total: sizes, unit: 'sizes', over: true },
    ]);
    expect(messages.at(-1)?.over).toBe(true);
  });

  it('says nothing into files, whatever the environment says', async () => {
    const file = join(folder, 'stderr');
    const stderr = openSync(file, 'w');
    const env = { ...process.env, GRADLINK_PROGRESS: '1' };
    const { status } = spawnSync(process.execPath, [program, ...job], {
      env,
      stdio: ['ignore', 'ignore', stderr],
    });
    closeSync(stderr);
    expect(status).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe('');
    const output = join(folder, 'output');
    const kept = [job[0]!, '--output-dir', output, ...job.slice(1)];
    expect(counts((await gradlink(kept, { terminal: true })).stderr)).toEqual([]);
    for (const name of ['rank-0.err', 'rank-1.err']) {
      expect(readFileSync(join(output, name), 'utf8')).toBe('');
    }
  });

  it('has none when it is of programs that have none', async () => {
    const hello = [process.execPath, '-e', 'console.error("hello")'];
    const { stderr } = await gradlink(['launch', '-n', '2', ...hello], { terminal: true });
    expect(stderr).toBe('hello\nhello\n');
  });

  it('that trains counts steps, beside lines with tags', async () => {
    const train = ['train', '--model', 'mlp', '--dataset', 'mnist', '--batch-size', '8'];
    const command = [process.execPath, program, ...train, '--steps', '4'];
    const { code, stdout, stderr } = await gradlink(
      ['launch', '-n', '2', '--tag-output', ...command],
      { terminal: true },
    );
    expect(code).toBe(0);
    expectWhole(stderr, 5, 'steps');
    expect(stdout.match(/^\[0\] Iter #\d: /gm)).toHaveLength(4);
    expect(stdout).not.toContain('progress');
  });
});

describe('a grid of runs', () => {
  it('says which run of how many it makes, and which step of how many', async () => {
    const plan = join(folder, 'plan.yaml');
    writeFileSync(
      plan,
      'model: mlp\ndataset: mnist\nbatch-size: [8]\ngrid: [[1, 1], [1, 2]]\nrepeats: 1\nwarmup: 1\nsteps: 3\n',
    );
    const out = join(folder, 'grid');
    const argv = ['train', '--style', 'tianshu', '--plan', plan, '--output-dir', out];
    const first = await gradlink(argv, { terminal: true });
    expect(first.code).toBe(0);
    expectWhole(first.stderr, 2, 'runs');
    for (const cell of ['1n1g', '1n2g']) {
      expect(first.stderr).toMatch(new RegExp(`: \\d/4 steps of ${cell}/mlp_b8_fp32_1`));
      expect(readFileSync(join(out, cell, 'mlp_b8_fp32_1/output.log'), 'utf8')).not.toContain(
        'progress',
      );
    }
    // They are there: nothing takes time.
    const again = await gradlink(argv, { terminal: true });
    expect(counts(again.stderr).at(-1)).toEqual({ done: 2, total: 2, unit: 'runs' });
    expect(again.stderr).not.toContain('s left');
    const quiet = await gradlink(argv);
    expect(quiet.stderr).toBe('');
    expect(quiet.stdout).toBe(first.stdout);
  });
});

describe('on a terminal for both', () => {
  const reason = missing(['script']);

  it('a bar stands below the lines, and is gone at the end', ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const ddp = ['ddp', '--synthetic-compute', '1', '--bucket-sizes', '25', '--modes', 'sync'];
    const command = [process.execPath, program, ...ddp, '--steps', '2', '--warmup', '1'].join(' ');
    const { stdout, status } = spawnSync('script', ['-qefc', command, '/dev/null'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    expect(status).toBe(0);
    expectWhole(stdout, 3, 'steps');
    // What a terminal shows: a line is cleared before another one is written there.
    const shown = stdout
      .split('\r\n')

      .map((line) => line.replace(/^.*\u001b\[2K/, '').replace(/\u001b\[?[\d;]*[A-Z78]?/gi, ''));
    expect(shown.some((line) => line.includes('█') || line.includes('░'))).toBe(false);
    expect(shown).toContain('Bucket size 25 MiB');
    expect(shown.at(-2)).toBe('# 2 cases: 2 ok, 0 failed');
  });
});
