// Every public class, function and constant is used by an example that is run. A new name needs one (examples/, ten lines)
// and then `node scripts/exports.mjs`.
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

it('every public value has an example', () => {
  const values = [...listed()];
  expect(values.length).toBeGreaterThan(100);
  expect(values.filter(([, example]) => !example).map(([name]) => name)).toEqual([]);
});
