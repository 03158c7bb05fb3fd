// Creates folders with their parents.
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Creates a folder and missing parents; an existing one is kept.
 *
 * Node's `recursive` never returns if the system reports ENOENT in an existing folder, as automounters do for unknown
 * hosts, and as /proc does.
 */
export function makeFolders(path: string): void {
  const whole = resolve(path);
  if (isFolder(whole)) return;
  const around = dirname(whole);
  if (around !== whole) makeFolders(around);
  try {
    mkdirSync(whole);
  } catch (error) {
    // Another process created it in the meantime.
    if (!isFolder(whole)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
