#!/usr/bin/env node
// Exit status 0 when node_modules holds what package-lock.json asks for, 1 when "npm ci" is due. npm leaves a lock file
// of its own in node_modules, so that two files tell it without asking npm (which takes a second).
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

function packagesOf(file) {
  return JSON.parse(readFileSync(join(root, file), 'utf8')).packages;
}

function isFresh() {
  let installed;
  try {
    installed = packagesOf('node_modules/.package-lock.json');
  } catch {
    return false;
  }
  const wanted = packagesOf('package-lock.json');
  return Object.entries(wanted).every(([path, { version, optional, devOptional, peer }]) => {
    if (path === '') return true;
    const found = installed[path];
    // An optional one for another platform is never there.
    return found ? found.version === version : Boolean(optional ?? devOptional ?? peer);
  });
}

process.exitCode = isFresh() ? 0 : 1;
