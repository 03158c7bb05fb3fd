// Every public class, function and constant is used by an example that is run, or is named in without-example.json: a list
// that only gets shorter. A new name needs an example (examples/, ten lines) and then `node scripts/exports.mjs`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { root } from '../support/walks.js';

/** `entry name` of each value that docs/exports.md lists, and whether it has an example there. */
function listed(): Map<string, boolean> {
  const found = new Map<string, boolean>();
  let entry = '';
  for (const line of readFileSync(join(root, 'docs/exports.md'), 'utf8').split('\n')) {
    entry = /^## (\S+)/.exec(line)?.[1] ?? entry;
    const name = /^- `(\w+)`, (?:class|function|constant)/.exec(line)?.[1];
    if (name !== undefined) found.set(`${entry} ${name}`, line.includes('[Example]('));
  }
  return found;
}

const values = listed();
const without = JSON.parse(
  readFileSync(join(root, 'test/docs/without-example.json'), 'utf8'),
) as readonly string[];

it('every public value has an example, or is on the list of those that have none yet', () => {
  const bare = [...values].filter(([, example]) => !example).map(([name]) => name);
  expect(bare.filter((name) => !without.includes(name))).toEqual([]);
});

it('the list names only what is public and has none', () => {
  expect(without.filter((name) => values.get(name) !== false)).toEqual([]);
});
