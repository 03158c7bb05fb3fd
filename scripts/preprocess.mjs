#!/usr/bin/env node
// Prints a C++ file as the compiler sees it after preprocessing, with the flags of its build.
//
//   node scripts/preprocess.mjs FILE
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const file = resolve(process.argv[2] ?? '');
const commands = JSON.parse(readFileSync(join(root, 'build/cmake/compile_commands.json'), 'utf8'));
const entry = commands.find((candidate) => candidate.file === file);
if (!entry) {
  console.error(`${file} is not part of the build; add it to its folder's sources.cmake.`);
  process.exit(1);
}
const command = entry.command.replace(/ -o \S+ -c /, ' -E -P ');
const { status } = spawnSync('sh', ['-c', command], { cwd: entry.directory, stdio: 'inherit' });
process.exitCode = status ?? 1;
