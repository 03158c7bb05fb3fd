#!/usr/bin/env node
// The prose of README and the guides, checked by textlint with our own rules (prose-rules.mjs), and the messages of lib/.
//
//   node scripts/prose.mjs             fails where a file has more findings than scripts/prose-allowed.json allows it
//   node scripts/prose.mjs --update    writes what there is as what is allowed: after a page has become plainer
//   node scripts/prose.mjs FILE...     every finding of these files
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';

import { allMessageFindings } from './prose-messages.mjs';
import { rules } from './prose-rules.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const allowance = join(root, 'scripts', 'prose-allowed.json');
/** Lists of names and of changes, and what a script writes. */
const leftOut = new Set(['CHANGELOG.md', 'docs/exports.md']);

const kernel = new TextlintKernel();

async function findingsOf(file) {
  const { messages } = await kernel.lintText(readFileSync(join(root, file), 'utf8'), {
    filePath: join(root, file),
    ext: '.md',
    plugins: [{ pluginId: 'markdown', plugin: markdown.default ?? markdown }],
    rules,
  });
  return messages.map(
    ({ line, ruleId, message }) => `${file}:${String(line)}: ${message} [${ruleId}]`,
  );
}

const [first, ...more] = process.argv.slice(2);
if (first !== undefined && first !== '--update') {
  for (const path of [first, ...more]) {
    for (const finding of await findingsOf(relative(root, resolve(path)))) console.log(finding);
  }
} else {
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
    .filter((file) => !leftOut.has(file));
  const found = {};
  for (const file of files) found[file] = await findingsOf(file);
  if (first === '--update') {
    const counts = Object.entries(found).map(([file, { length }]) => [file, length]);
    const few = Object.fromEntries(counts.filter(([, count]) => count > 0));
    writeFileSync(allowance, `${JSON.stringify(few, null, 2)}\n`);
  } else {
    for (const finding of allMessageFindings(root)) {
      console.error(finding);
      process.exitCode = 1;
    }
    const allowed = JSON.parse(readFileSync(allowance, 'utf8'));
    for (const [file, findings] of Object.entries(found)) {
      const most = allowed[file] ?? 0;
      if (findings.length <= most) continue;
      console.error(findings.join('\n'));
      console.error(`${file}: ${String(findings.length)} findings, allowed are ${String(most)}`);
      process.exitCode = 1;
    }
  }
}
