// docs/exports.md is what the package exports.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

it('docs/exports.md has every public name; after a change run: node scripts/exports.mjs', () => {
  const names = execFileSync(process.execPath, [path('scripts/exports.mjs'), '--print']);
  expect(readFileSync(path('docs/exports.md'), 'utf8')).toBe(names.toString());
}, 120_000);
