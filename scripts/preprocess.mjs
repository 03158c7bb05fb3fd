#!/usr/bin/env node
// Prints a C++ file as the compiler sees it after preprocessing, with the flags of its build.
//
//   node scripts/preprocess.mjs FOLDER FILE    FOLDER holds compile_commands.json
//   node scripts/preprocess.mjs FOLDER         the names of its files, one a line
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [folder = '', file] = process.argv.slice(2);
const commands = JSON.parse(readFileSync(join(folder, 'compile_commands.json'), 'utf8'));
if (file === undefined) {
  console.log(commands.map((entry) => entry.file).join('\n'));
} else {
  const entry = commands.find((candidate) => candidate.file === resolve(file));
  if (!entry) {
    console.error(`${file} is not part of the build; add it to its folder's sources.cmake.`);
    process.exit(1);
  }
  const command = entry.command.replace(/ -o \S+ -c /, ' -E -P ');
  const { status } = spawnSync('sh', ['-c', command], { cwd: entry.directory, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}
