#!/usr/bin/env node
// The prose of README and the guides, checked by textlint with our own rules (prose-rules.mjs), and the messages of lib/.
//
//   node scripts/prose.mjs             all of them; fails where there is a finding
//   node scripts/prose.mjs FILE...     these files
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';

import { allMessageFindings } from './prose-messages.mjs';
import { rules } from './prose-rules.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Lists of names and of changes, and what a script writes. */
const leftOut = new Set(['CHANGELOG.md']);

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

/** Every page of the repository, but those left out. */
function allPages() {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  });
  return listed
    .trim()
    .split('\n')
    .filter((file) => !leftOut.has(file) && existsSync(join(root, file)));
}

const given = process.argv.slice(2).map((path) => relative(root, resolve(path)));
const pages = given.length > 0 ? given : allPages();
const found = given.length > 0 ? [] : [...allMessageFindings(root)];
for (const page of pages) found.push(...(await findingsOf(page)));
for (const finding of found) console.error(finding);
if (found.length > 0) process.exitCode = 1;
