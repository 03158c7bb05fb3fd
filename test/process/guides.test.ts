// The guides that are walks, and the examples, run as they stand.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { shellBlocks } from '../support/guides.js';
import { installCommands, root, walkEnvironment, walks } from '../support/walks.js';
import { folderOfAllTests } from '../support/folders.js';

let scratch = '';
folderOfAllTests((made) => (scratch = made));
beforeAll(() => {
  installCommands(scratch);
});

describe('walks', () => {
  // The first is the newcomer's; of the others' commands .ci/run has most elsewhere.
  const [first, ...others] = walks;
  const walk = (guide: string) => {
    const folder = mkdtempSync(join(scratch, 'walk-'));
    installCommands(folder);
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules/gradlink'));
    const script = `set -e\n${shellBlocks(guide).join('\n')}`;
    const { status, stdout, stderr } = spawnSync('bash', ['-c', script], {
      cwd: folder,
      encoding: 'utf8',
      env: walkEnvironment(folder),
    });
    expect(status, stderr).toBe(0);
    expect(stdout.length).toBeGreaterThan(1000);
    if (guide !== 'docs/start.md') return;
    expect(statSync(join(folder, 'report.html')).size).toBeGreaterThan(10_000);
    expect(stdout).toMatch(/^base {2}today \(collectives/m);
    expect(stdout).toContain('PREDICTED');
  };

  it(first!, () => walk(first!));
  it.each(others)('%s', { tags: ['full'] }, walk);
});

describe('programs', () => {
  it('docs/programs.md: its program runs as it stands', () => {
    const text = readFileSync(join(root, 'docs/programs.md'), 'utf8');
    const program = /^```ts\n(.*?)^```/ms.exec(text)?.[1] ?? '';
    const stdout = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(stdout).toMatch(/^device: \d+ arrays, \d+ bytes$/m);
    expect(stdout).toContain('14 of 14 batches');
    expect(stdout).toMatch(/^local .*limit/m);
  });
});

describe('README.md', () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8');
  const snippets = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code!);

  it('has three snippets', () => {
    expect(snippets.length).toBe(3);
  });

  it.each(snippets)('%#: runs as it stands', (code) => {
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', code],
      { cwd: root, encoding: 'utf8' },
    );
    expect(status, stderr).toBe(0);
  });
});

describe('examples', () => {
  // train.js writes a file, and has a test of its own.
  const names = readdirSync(join(root, 'examples')).filter(
    (name) => name.endsWith('.js') && name !== 'train.js',
  );

  it.each(names)('%s prints what it says', (name) => {
    const text = readFileSync(join(root, 'examples', name), 'utf8');
    const command = /^\/\/ Run: (.+)$/m.exec(text)?.[1];
    const printed = [...text.matchAll(/^\/\/ Prints: (.+)$/gm)].map(([, line]) => line);
    expect(command).toBeDefined();
    expect(printed).not.toEqual([]);
    // An example is read in one look.
    const lines = text.trimEnd().split('\n');
    expect(lines.filter((line) => !line.startsWith('// Prints')).length).toBeLessThanOrEqual(17);
    const stdout = execFileSync('sh', ['-c', command!], {
      cwd: root,
      encoding: 'utf8',
      env: walkEnvironment(scratch),
    });
    expect(stdout.trimEnd().split('\n')).toEqual(printed);
  });
});
