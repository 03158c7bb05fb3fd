#!/usr/bin/env node
// npm's prepare script: lib/**/*.ts -> dist/. Does nothing where the sources or the compiler are not there (an installed
// package, or an install without devDependencies). With --if-stale, only when a source is newer than the last build.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
const stamp = join(dist, '.built');

function filesUnder(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function isStale(sources) {
  if (!existsSync(stamp)) return true;
  const built = statSync(stamp).mtimeMs;
  return sources.some((file) => statSync(file).mtimeMs > built);
}

/** An output whose source is gone would still be imported, and packed. */
function removeOrphans() {
  for (const file of filesUnder(dist)) {
    const source = file.replace(dist, root).replace(/\.d\.ts(\.map)?$|\.js(\.map)?$/, '.ts');
    if (source !== file.replace(dist, root) && !existsSync(source)) rmSync(file);
  }
}

function compiler() {
  try {
    return createRequire(import.meta.url).resolve('typescript/bin/tsc');
  } catch {
    return undefined;
  }
}

function main() {
  const lib = join(root, 'lib');
  const tsc = compiler();
  if (!existsSync(join(lib, 'index.ts')) || !tsc) return;
  const sources = [
    ...filesUnder(lib),
    join(root, 'tsconfig.json'),
    join(root, 'tsconfig.build.json'),
    join(root, 'package-lock.json'),
  ].filter(existsSync);
  mkdirSync(dist, { recursive: true });
  removeOrphans();
  if (process.argv.includes('--if-stale') && !isStale(sources)) return;
  const started = new Date();
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
    stdio: 'inherit',
  });
  if (status !== 0) {
    rmSync(stamp, { force: true });
    process.exitCode = 1;
    return;
  }
  writeFileSync(stamp, `${started.toISOString()}\n`);
}

main();
