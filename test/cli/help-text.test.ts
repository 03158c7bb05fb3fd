import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { commands } from '../../lib/cli/commands.js';
import { fitted } from '../../lib/cli/terminal/help-text.js';
import { gradlink } from '../support/cli.js';
import { root } from '../support/walks.js';

const names = Object.keys(commands);

/** Words without what lines and the shell's continuations put between them. */
function wordsOf(text: string): string {
  return text.replaceAll('\\\n', ' ').replaceAll(/\s+/g, ' ').trim();
}

describe('help on a narrow terminal', () => {
  it.each(['', ...names])('of gradlink %s fits 60 columns', async (name) => {
    const argv = [...(name === '' ? [] : [name]), '--help'];
    const { code, stdout } = await gradlink(argv, { columns: 60 });
    expect(code).toBe(0);
    expect(stdout.split('\n').filter((line) => line.length > 60)).toEqual([]);
    const { stdout: wide } = await gradlink(argv, { columns: 500 });
    // A script has to know it of each.
    expect(wide).toContain('\nExit status: ');
    expect(wordsOf(stdout)).toBe(wordsOf(wide));
  });

  it('continues a command as a shell reads it, and says below it what it is for', () => {
    const example = '  $ gradlink report run.json -o report.html          a page with charts';
    expect(fitted(example, 40).split('\n')).toEqual([
      '  $ gradlink report run.json -o \\',
      '      report.html',
      '      a page with charts',
    ]);
  });

  it('fills paragraphs anew, and leaves those that fit', () => {
    const text = 'One two three four five\nsix seven.\n\nStays\nso.';
    expect(fitted(text, 12)).toBe('One two\nthree four\nfive six\nseven.\n\nStays\nso.');
    expect(fitted(text, 30)).toBe(text);
  });

  it('breaks a message that is too long, too', async () => {
    const { stderr } = await gradlink(['collectives', 'all_redcue'], { columns: 60 });
    for (const line of stderr.split('\n')) expect(line.length).toBeLessThanOrEqual(60);
    expect(wordsOf(stderr)).toMatch(/collective 'all_redcue'.*: all_reduce\b/);
  });
});

describe('help in a file', () => {
  it('has sizes as they are typed', async () => {
    const { stdout } = await gradlink(['collectives', '--help']);
    expect(stdout).toMatch(/smallest size \(default: 32M\)/);
    expect(stdout).not.toMatch(/default:\s+\d{6}/);
  });

  it('has the defaults that the guide of launching has', async () => {
    const { stdout } = await gradlink(['launch', '--help'], { columns: 500 });
    const guide = readFileSync(join(root, 'docs/launch.md'), 'utf8');
    const rows = [...guide.matchAll(/^\| `(--[\w-]+) .*\((\d+)\) +\|$/gm)];
    expect(rows).toHaveLength(4);
    for (const [, name, value] of rows)
      expect(stdout).toMatch(new RegExp(`${name!} .*\\(default: ${value!}\\)\n`));
  });
});
