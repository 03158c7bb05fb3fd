// `gradlink check` of several hosts: by a remote shell that stays on this machine, and as a job.
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { parseReport } from '../../lib/results/read-report.js';
import type { Report } from '../../lib/results/result.js';
import { folderOfEachTest } from '../support/folders.js';
import { gradlink } from '../support/launching.js';

let folder = '';
folderOfEachTest((one) => (folder = one));

/** A remote shell by which every host is this machine, but one that cannot be entered. */
function remoteShell(): string {
  const file = join(folder, 'shell');
  writeFileSync(file, '#!/bin/sh\nhost=$1\nshift\n[ "$host" = n3 ] && exit 255\nexec sh -c "$*"\n');
  chmodSync(file, 0o755);
  return file;
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

describe('a check of several hosts', { tags: 'smoke' }, () => {
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
