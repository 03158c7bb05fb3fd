// `gradlink check` on this machine: what it looks at, and faults that are made here.
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, describe, expect, it } from 'vitest';

import { parseReport } from '../../lib/results/read-report.js';
import { hasMeasurement } from '../../lib/results/result.js';
import { folderOfAllTests } from '../support/folders.js';
import { childrenOf } from '../support/launching.js';
import { MemoryGroup } from '../support/memory-group.js';

const program = join(import.meta.dirname, '../../bench/gradlink.js');

function check(
  args: readonly string[],
  { launcher = [], env = {} }: { launcher?: readonly string[]; env?: NodeJS.ProcessEnv } = {},
) {
  const [first = '', ...rest] = [...launcher, process.execPath, program, 'check', ...args];
  const { status, stdout } = spawnSync(first, rest, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  return { status, stdout };
}

let folder = '';
folderOfAllTests((made) => (folder = made));
let group: MemoryGroup | undefined;
afterEach(async () => {
  await group?.remove();
  group = undefined;
});

describe('a check of ranks', () => {
  it('sums between threads and between processes, right to the bit', () => {
    const { stdout } = check(['--parts', 'ranks', '--format', 'json']);
    const { cases } = parseReport(stdout, 'check');
    const measured = cases.filter(hasMeasurement);
    expect(measured).toHaveLength(cases.length);
    expect(measured.map((one) => one.check)).toEqual(
      cases.map(() => expect.objectContaining({ kind: 'exact', wrong: 0 }) as unknown),
    );
    const between = cases.map(({ parameters }) => parameters.between);
    expect(new Set(between)).toEqual(new Set(['threads', 'processes']));
  });
});

describe('a check', { tags: 'smoke' }, () => {
  it('is good by its exit status and its first line', () => {
    const { status, stdout } = check(['--parts', 'doctor,memory']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^good: 2 of 2/);
  });

  it('is bad by what a file expects, and none by a file that is wrong', () => {
    const file = join(folder, 'expected.yaml');
    writeFileSync(file, 'memory: { copyGBps: 100000 }');
    const { status, stdout } = check(['--parts', 'memory', '--expect', file]);
    expect(stdout).toMatch(/^bad: memory: .* 0\.0\d of 100000 \(.*expected\.yaml\)/);
    expect(status).toBe(1);
    writeFileSync(file, 'memory: { copyMBps: 100000 }');
    expect(check(['--parts', 'memory', '--expect', file]).status).toBe(2);
  });

  it('names memory that is too little to measure', (context) => {
    group = MemoryGroup.make(context, 160 * 2 ** 20);
    const { status, stdout } = check(['--parts', 'doctor,memory'], { launcher: group.launcher });
    expect(status).toBe(1);
    expect(stdout).toMatch(/^bad: memory: .* left, of 0\.2 GiB by .*\n/);
    expect(stdout.match(/^bad /gm)).toHaveLength(1);
  });

  it('ends by the signal that it is sent while its processes sum', async () => {
    const child = spawn(process.execPath, [program, 'check', '--parts', 'ranks']);
    const ended = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)));
    while (child.exitCode === null && childrenOf(child).length === 0) await sleep(1);
    child.kill('SIGINT');
    expect(await ended).toBe('SIGINT');
  });

  it('says of how many rounds its figures are, where it goes on for a time', () => {
    const { stdout } = check(['--parts', 'memory', '--minutes', '0.001', '--format', 'json']);
    const [memory] = parseReport(stdout, 'check').cases.filter(hasMeasurement);
    expect(memory?.values?.rounds).toBeGreaterThan(0);
  });

  it('keeps what was measured when a signal ends its rounds', async () => {
    const args = ['check', '--parts', 'memory,ranks', '--hours', '1', '--format', 'json'];
    // As of a terminal: its processes get the signal too.
    const child = spawn(process.execPath, [program, ...args], { detached: true });
    let stdout = '';
    child.stdout.on('data', (chunk) => (stdout += String(chunk)));
    const ended = new Promise((resolve) => child.once('close', resolve));
    // The line of the first round; its processes are those of a later one then.
    await new Promise((resolve) => child.stderr.once('data', resolve));
    while (child.exitCode === null && childrenOf(child).length === 0) await sleep(1);
    process.kill(-child.pid!, 'SIGINT');
    const code = await ended;
    const { cases } = parseReport(stdout, 'check');
    expect(cases).toHaveLength(9);
    const rounds = cases.filter(hasMeasurement).map(({ values }) => values?.rounds ?? 0);
    expect(rounds).toHaveLength(9);
    expect(rounds[0]).toBeGreaterThan(1);
    expect(rounds.at(-1)).toBe(rounds[0]! - 1);
    expect(code).toBe(cases.some((one) => one.status === 'error') ? 1 : 0);
  });
});
