// Folders that are made with those around them.
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder, and those around it that are missing; one that is there already stays.
 *
 * Not by Node's own `recursive`: that never returns where the system says ENOENT though the folder around is there, as
 * automounters do for hosts and homes that they do not know, and /proc.
 */
export function makeFolders(path: string): void {
  const whole = resolve(path);
  if (isFolder(whole)) return;
  const around = dirname(whole);
  if (around !== whole) makeFolders(around);
  try {
    mkdirSync(whole);
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isFolder(whole)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
