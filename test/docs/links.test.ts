// Links of the documentation lead somewhere, to the heading too, every guide has its place in the contents, and what is
// shown runs where gradlink is installed.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import { describe, expect, it } from 'vitest';

import { root } from '../support/walks.js';

const files = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => existsSync(join(root, file)));

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/** Without blocks of code, whose brackets are no links. */
function proseOf(file: string): string {
  return textOf(file).replace(/^```.*?^```/gms, '');
}

/** What a page's headings are linked by, as GitHub and typedoc make it of their text. */
function anchorsOf(file: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading] of proseOf(file).matchAll(/^#+ (.+)$/gm)) {
    const slug = heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-');
    let own = slug;
    for (let more = 1; anchors.has(own); ++more) own = `${slug}-${String(more)}`;
    anchors.add(own);
  }
  return anchors;
}

interface Link {
  readonly file: string;
  readonly target: string;
}

const links: readonly Link[] = files.flatMap((file) => [
  ...[...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => ({
    file,
    target: target!,
  })),
  ...[...proseOf(file).matchAll(/<img [^>]*src="([^"]+)"/g)].map(([, target]) => ({
    file,
    target: target!,
  })),
]);

/** What is wrong with a link inside the repository. */
function broken({ file, target }: Link): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [path, anchor] = target.split('#') as [string, string?];
  const to = path === '' ? file : normalize(join(dirname(file), path));
  if (!existsSync(join(root, to))) return `${file}: ${target}: there is no ${to}`;
  if (anchor === undefined || anchorsOf(to).has(anchor)) return undefined;
  return `${file}: ${target}: ${to} has no such heading`;
}

describe('links', () => {
  it('lead to files and headings that there are', () => {
    expect(links.length).toBeGreaterThan(100);
    expect(links.map(broken).filter((one) => one !== undefined)).toEqual([]);
  });

  it('would be found broken', () => {
    expect(broken({ file: 'README.md', target: 'docs/nothing.md' })).toMatch(
      / no docs\/nothing\.md$/,
    );
    expect(broken({ file: 'README.md', target: 'docs/errors.md#nothing' })).toContain('heading');
  });
});

describe('what a guide shows', () => {
  const shown = files
    .filter((file) => file.startsWith('docs/'))
    .flatMap((file) => {
      const code = [...textOf(file).matchAll(/^```.*?^```|`[^`\n]+`/gms)].map(([one]) => one);
      return code.flatMap((one) => one.split('\n')).map((line) => `${file}: ${line}`);
    });

  it('runs where gradlink is installed', () => {
    const ofCheckout = shown.filter((line) => /\bnode (bench|examples)\//.test(line));
    // Says that it is one.
    expect(ofCheckout).toEqual(['docs/decentralised.md: `node bench/least-squares.js`']);
  });

  it('needs no Node newer than the oldest that is supported', () => {
    const declared = shown.filter((line) => /: +(await )?using \w/.test(line));
    expect(declared).toEqual([]);
  });
});

describe('docs/README.md', () => {
  it('lists every guide once, under one of the four kinds', () => {
    const parts = textOf('docs/README.md').split(/^## /m).slice(1);
    expect(parts.map((part) => part.split('\n', 1)[0])).toEqual([
      'Tutorials',
      'How-to guides',
      'Reference',
      'Explanation',
    ]);
    const listed = parts
      .flatMap((part) => [...part.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)])
      .map(([, path]) => path!)
      .filter((path) => !path.includes('/'));
    const there = readdirSync(join(root, 'docs')).filter((name) => /^[a-z].*\.md$/.test(name));
    expect([...listed].sort()).toEqual(there.sort());
  });
});

describe('README.md', () => {
  it('is two screens', () => {
    expect(textOf('README.md').split('\n').length).toBeLessThan(110);
  });
});
