// `gradlink check` of several hosts: by a remote shell that stays on this machine, and as a job.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { parseReport } from '../../lib/results/read-report.js';
import { hasMeasurement, type Report } from '../../lib/results/result.js';
import { folderOfEachTest } from '../support/folders.js';
import { gradlink, until, type Ended, type Started } from '../support/launching.js';
import { Marked } from '../support/marked.js';
import { freePort } from '../support/tcp.js';

let folder = '';
folderOfEachTest((one) => (folder = one));
let marked: Marked;
beforeEach(() => (marked = new Marked()));
afterEach(() => marked.remove());

/**
 * A remote shell by which every host is this machine. It notes whom it enters; n3 cannot be entered, and 127.0.0.2 and
 * 127.0.0.3 not the first time. Later 127.0.0.3 never comes to the end of its login.
 */
function remoteShell(): string {
  const file = join(folder, 'shell');
  const lines = [
    '#!/bin/sh',
    `entered=${join(folder, 'entered')}`,
    'host=$1; shift',
    'echo $host >>$entered',
    '[ $host = n3 ] && exit 255',
    'case $host in',
    '  127.0.0.[23]) [ $(grep -c $host $entered) = 1 ] && exit 255 ;;',
    'esac',
    '[ $host = 127.0.0.3 ] && exec cat >/dev/null',
    'exec sh -c "$*"',
  ];
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  chmodSync(file, 0o755);
  return file;
}

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const child = spawn(process.execPath, [gradlink, 'check', ...args], {
    env: { ...process.env, ...env, ...marked.env },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
  return { child, ended };
}

function ofProcess(pid: number, file: 'cmdline' | 'status'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    // It has ended.
    return '';
  }
}

/** What hosts were told to run: commands of gradlink with a report to be read. */
function told(command: string): number[] {
  return marked.pids().filter((pid) => {
    const words = ofProcess(pid, 'cmdline').split('\0');
    return words.includes(command) && words.includes('--format');
  });
}

/** Stops a process: whoever waits for it to be done waits in vain. */
async function hold(pid: number): Promise<number> {
  process.kill(pid, 'SIGSTOP');
  await until(() => /^State:\s*T/m.test(ofProcess(pid, 'status')));
  return pid;
}

/** It is asked to end, and does. */
async function letGo(pid: number): Promise<void> {
  await until(() => {
    const [, mask = '0'] = /^ShdPnd:\s*(\w+)$/m.exec(ofProcess(pid, 'status')) ?? [];
    return (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
  });
  process.kill(pid, 'SIGCONT');
}

interface Checked {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...args: readonly string[]): Checked {
  const { status, stdout, stderr } = spawnSync(process.execPath, [gradlink, ...args], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

/** What of each host, or of what is between them, was looked at, and how that ended. */
function partsOf({ cases }: Report): Set<string> {
  return new Set(
    cases.map(({ name, status, parameters: { host, between } }) =>
      [name, host ?? between ?? '', status].join(' '),
    ),
  );
}

describe('a check of several hosts that measures their ways', () => {
  it('goes on without one that does not answer, and names it in a file for schedulers', () => {
    const [bad, first] = [join(folder, 'bad'), join(folder, 'first.json')];
    const args = ['-H', '127.0.0.1,localhost,n3', '--remote-shell', remoteShell()];
    const parts = ['--parts', 'doctor'];
    const { status } = run('check', ...args, ...parts, '--bad-hosts', bad, '--output', first);
    expect(status).toBe(1);
    expect(readFileSync(bad, 'utf8')).toBe('n3\n');
    const report = parseReport(readFileSync(first, 'utf8'), first);
    expect(partsOf(report)).toEqual(
      new Set([
        'hosts  ok',
        'doctor 127.0.0.1 ok',
        'doctor localhost ok',
        ...['latency', 'bandwidth', 'bidirectional'].map((name) => `${name}  ok`),
        'all_reduce hosts ok',
        'host 127.0.0.1 ok',
        'host localhost ok',
        'host n3 error',
      ]),
    );
    const ways = report.cases.filter(({ name }) => name === 'bandwidth');
    expect(ways.map(({ parameters: { from, to } }) => [from, to])).toEqual([
      ['127.0.0.1', 'localhost'],
      ['localhost', '127.0.0.1'],
    ]);
    // Later it is not asked for any more.
    const now = run('check', ...args.with(1, '127.0.0.1'), ...parts, '--previous', first);
    expect(now.status).toBe(0);
    expect(now.stdout).toMatch(/^ {2}\w+: .*host n3/m);
  });
});

describe('a check of several hosts', { tags: 'smoke' }, () => {
  it('as a job looks at each host once, and rank 0 prints', () => {
    const { status, stdout } = run(
      'launch',
      '-n',
      '2',
      ...['gradlink', 'check', '--json', '--parts', 'doctor'],
    );
    expect(status).toBe(0);
    expect(parseReport(stdout, 'check').cases.map(({ name }) => name)).toEqual(['doctor', 'host']);
  });

  it('refuses what it cannot use', () => {
    expect(run('check', '--remote-shell', 'ssh').status).toBe(2);
    expect(run('launch', '-n', '1', 'gradlink', 'check', '-H', 'localhost').status).toBe(2);
    const other = join(folder, 'other.json');
    expect(run('collectives', 'all_reduce', '-b', '8', '-e', '8', '--output', other).status).toBe(
      0,
    );
    expect(run('check', '--parts', 'doctor', '--previous', other).status).toBe(2);
  });
});

describe('a check of several hosts that is ended', { tags: 'smoke' }, () => {
  const of = (hosts: string): string[] => [
    '-H',
    hosts,
    '--remote-shell',
    remoteShell(),
    '--parts',
    'doctor',
    '--json',
  ];

  it('reports its rounds until then, whose hosts were entered once', async () => {
    const { child, ended } = start([...of('127.0.0.1,127.0.0.2,127.0.0.3'), '--hours', '1']);
    // The first round is of one host. The second is back in a later one, and nobody waits for the third.
    await until(() => told('pairs').length === 2);
    const held = await hold(told('pairs')[0]!);
    child.kill('SIGINT');
    await letGo(held);
    const { code, stdout } = await ended;
    await marked.expectNothingLeft();
    const { cases } = parseReport(stdout, 'check');
    const bad = cases.filter(({ status }) => status !== 'ok');
    expect(bad).toMatchObject([
      { name: 'host', parameters: { host: '127.0.0.2' }, code: 'ERR_PEER_LOST' },
      { name: 'host', parameters: { host: '127.0.0.3' }, code: 'ERR_PEER_LOST' },
    ]);
    expect(code).toBe(1);
    const roundsOf = (name: string): (number | undefined)[] =>
      cases
        .filter((one) => one.name === name)
        .map((one) => (hasMeasurement(one) ? (one.values?.rounds ?? undefined) : undefined));
    const [rounds = 0, ofSecond] = roundsOf('doctor');
    expect(rounds).toBeGreaterThan(1);
    expect(ofSecond).toBe(1);
    // What was cut is left out.
    expect(roundsOf('latency')).toEqual([]);
    expect(roundsOf('host')).toEqual([rounds - 1, undefined, undefined]);
    const entered = readFileSync(join(folder, 'entered'), 'utf8').trim().split('\n');
    expect(entered.toSorted()).toEqual([1, 2, 2, 3, 3].map((last) => `127.0.0.${String(last)}`));
  });

  it('by a signal ends by it, and leaves nothing on the hosts', async () => {
    const bad = join(folder, 'bad');
    writeFileSync(bad, 'another day\n');
    const { child, ended } = start([...of('127.0.0.1,localhost'), '--bad-hosts', bad]);
    await until(() => told('pairs').length === 2);
    const held = await hold(told('pairs')[0]!);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ signal: 'SIGTERM', stdout: '' });
    expect(readFileSync(bad, 'utf8')).toBe('');
    await letGo(held);
    await marked.expectNothingLeft();
  });
});

describe('a check as a job', { tags: 'smoke' }, () => {
  /** Two ranks whom nobody watches, on one host. */
  async function ranksOf(env: Readonly<Record<string, string>> = {}): Promise<[Started, Started]> {
    const port = String(await freePort());
    const place = { GRADLINK_JOB: 'job', MASTER_ADDR: '127.0.0.1', MASTER_PORT: port };
    const [first, second] = ['0', '1'].map((rank) =>
      start(['--parts', 'doctor'], {
        ...place,
        GRADLINK_RANK: rank,
        GRADLINK_SIZE: '2',
        GRADLINK_TRANSPORT: 'tcp',
        ...(rank === '0' ? env : {}),
      }),
    );
    return [first!, second!];
  }

  it('names the rank that is lost, and ends what it runs', async () => {
    const [first, second] = await ranksOf();
    await until(() => told('check').length > 0);
    const held = await hold(told('check')[0]!);
    second.child.kill('SIGKILL');
    await letGo(held);
    const { code, stderr } = await first.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/\brank 1\b.*ERR_PEER_LOST/);
    await marked.expectNothingLeft();
  });

  it('names a host whose report cannot be read', async () => {
    // What its host is checked by prints more than a report.
    const [first, second] = await ranksOf({
      NODE_OPTIONS: '--import=data:text/javascript,console.log(1)',
    });
    const { code, stdout } = await first.ended;
    expect(code).toBe(1);
    expect(stdout).toMatch(/^bad +\S+: machine /m);
    expect(await second.ended).toMatchObject({ code: 0, stderr: '' });
  });
});
