// docs/troubleshooting.md has a section for every error code, each with a message that its program really ends with.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { GradlinkError } from '../../lib/errors.js';
import { packageFolder } from '../../lib/package-folder.js';
import { root } from '../support/walks.js';

const text = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8');

interface Section {
  readonly code: string;
  readonly message: string;
  readonly body: string;
  readonly program: string | undefined;
}

const sections: readonly Section[] = text
  .split(/^## /m)
  .filter((part) => part.startsWith('ERR_'))
  .map((part) => ({
    code: /^\w+/.exec(part)![0],
    message: /^```text\n(.*?)\n```/ms.exec(part)?.[1] ?? '',
    body: part,
    program: /^```js\n(.*?)^```/ms.exec(part)?.[1],
  }));

/** The codes that lib/errors.ts declares. */
const declared = [
  ...readFileSync(join(root, 'lib/errors.ts'), 'utf8').matchAll(/^ +\| '(ERR_\w+)'/gm),
].map(([, code]) => code!);

/** The message as a pattern: numbers may be others, … stands for anything. */
function pattern(message: string): RegExp {
  const escaped = message.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(escaped.replaceAll('…', '.*').replace(/\d+/g, '\\d+'), 's');
}

/** All sources, for the messages that no short program can bring about. */
function sources(): string {
  return ['native', 'lib']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.(cc|h|ts)$/.test(name))
        .map((name) => readFileSync(join(root, folder, name), 'utf8')),
    )
    .join('\n');
}

describe('docs/troubleshooting.md', () => {
  it('has one section for each code', () => {
    expect(declared.length).toBeGreaterThan(14);
    expect(sections.map(({ code }) => code).sort()).toEqual([...declared].sort());
  });

  it.each(sections)('$code says message, cause and remedy', ({ message, body }) => {
    expect(message).not.toBe('');
    expect(body).toMatch(/^\*\*Cause\.\*\* \S/m);
    expect(body).toMatch(/^\*\*Remedy\.\*\* \S/m);
  });

  const shown = sections.filter(({ program }) => program !== undefined);
  it.each(shown)('$code is what its program ends with', ({ code, message, program }) => {
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', program!],
      { cwd: root, encoding: 'utf8' },
    );
    expect(status).toBe(1);
    expect(stderr).toMatch(pattern(message));
    expect(stderr).toContain(`code: '${code}'`);
    // The native addon's own errors of misuse have no section in them.
    if (stderr.includes('help:')) expect(stderr).toContain(`#${code.toLowerCase()}'`);
  });

  it('shows messages of the sources where there is no program', () => {
    const all = sources();
    const bare = sections.filter(({ program }) => program === undefined);
    expect(bare.map(({ code }) => code)).toEqual(['ERR_OUT_OF_MEMORY', 'ERR_INTERNAL']);
    for (const { message } of bare) {
      const pieces = message.split(/ ?\d+ ?|: /).filter((piece) => piece !== '');
      expect(pieces.filter((piece) => !all.includes(piece))).toEqual([]);
    }
  });
});

describe('error.help', () => {
  it('is the path of the section in the package', () => {
    const { help } = new GradlinkError('ERR_PEER_LOST', 'rank 1 is gone');
    expect(help).toBe(join(packageFolder()!, 'docs/troubleshooting.md#err_peer_lost'));
    expect(existsSync(help.split('#')[0]!)).toBe(true);
  });
});
