// Every public class, function and constant is used by an example that is run (examples/, ten lines), and no name comes or
// goes unseen.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { root } from '../support/walks.js';

interface Name {
  readonly name: string;
  readonly isValue: boolean;
  readonly hasExample: boolean;
}

function publicNames(): Name[] {
  const text = execFileSync(process.execPath, [join(root, 'scripts/exports.mjs')]).toString();
  let entry = '';
  return text.split('\n').flatMap((line) => {
    entry = /^## (\S+)/.exec(line)?.[1] ?? entry;
    const [, name, kind] = /^- `(\w+)`, (\w+)/.exec(line) ?? [];
    if (name === undefined) return [];
    const isValue = ['class', 'function', 'constant'].includes(kind ?? '');
    return [{ name: `${entry} ${name}`, isValue, hasExample: line.includes('[Example](') }];
  });
}

it('every public value has an example, and the public names are those that are known', () => {
  const names = publicNames();
  const values = names.filter(({ isValue }) => isValue);
  expect(values.filter(({ hasExample }) => !hasExample).map(({ name }) => name)).toEqual([]);
  // A change of these two is a change of the package's interface: `node scripts/exports.mjs` before and after shows it, and
  // CHANGELOG.md says it.
  const digest = createHash('sha256').update(names.map(({ name }) => name).join('\n'));
  expect(names).toHaveLength(538);
  expect(digest.digest('hex').slice(0, 16)).toBe('92297260e4a328ec');
}, 120_000);
