#!/usr/bin/env node
// Prints the lines of text that git tracks, by area, beside those of the last release, so that growth is seen.
//
//   node scripts/lines.mjs              the table
//   node scripts/lines.mjs --release    and keeps what it counted as those of the last release (scripts/lines.json)
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const kept = join(root, 'scripts', 'lines.json');

/** The first that fits. */
const areas = [
  ['native, source', /^native\/(?!test\/)/],
  ['native, tests', /^native\/test\//],
  ['lib', /^lib\//],
  ['tests of lib', /^test\/(?!fakes\/)/],
  ['stand-ins', /^test\/fakes\//],
  ['lab, bench', /^(lab|bench)\//],
  ['docs', /^(docs\/|\w+\.md$)/],
  ['the rest', /^/],
];

/** What somebody reads: neither pictures nor what a tool writes. */
const unread = /\.(png|svg|ico|br|ptx)$|^package-lock\.json$/;

function counted() {
  const lines = Object.fromEntries(areas.map(([name]) => [name, 0]));
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split(
    '\0',
  );
  for (const file of files.filter((one) => one !== '' && !unread.test(one))) {
    const [name] = areas.find(([, pattern]) => pattern.test(file));
    lines[name] += readFileSync(join(root, file), 'utf8').split('\n').length - 1;
  }
  return lines;
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const now = counted();
if (process.argv.includes('--release')) {
  writeFileSync(kept, `${JSON.stringify({ version, lines: now }, undefined, 2)}\n`);
}
const before = JSON.parse(readFileSync(kept, 'utf8'));
const sum = (lines) => Object.values(lines).reduce((a, b) => a + b, 0);
const row = (name, was, is) =>
  `${name.padEnd(16)}${String(was).padStart(9)}${String(is).padStart(9)}${String(is - was).padStart(9)}`;
console.log(`${'Lines'.padEnd(16)}${before.version.padStart(9)}${'now'.padStart(9)}`);
for (const [name] of areas) console.log(row(name, before.lines[name], now[name]));
console.log(row('all', sum(before.lines), sum(now)));
