// Replaces folders so that the old or the new content always exists, even if the process is killed. Node cannot
// exchange two folders, so the old one is kept under a known name until the new one is in place.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { hasCode, partialName, removePartials, syncFolder, writeOwnFile } from '../files/index.js';

/** The name of the old folder during the replacement. */
const asideOf = (folder: string): string => join(dirname(folder), `.${basename(folder)}.old`);

/** Where the content of `folder` is now. */
export function wholeFolder(folder: string): string {
  const aside = asideOf(folder);
  return !existsSync(folder) && existsSync(aside) ? aside : folder;
}

/** The folder whose content an entry beside it may be. */
export function wholeName(entry: string): string {
  return /^\.(.*)\.old$/.exec(entry)?.[1] ?? entry;
}

const mostTries = 10;

/** Reads from `folder`, and again if another process replaced it meanwhile: files of both would mix. */
export function readWhole<T>(folder: string, read: (place: string) => T): T {
  for (let tries = 1; ; ++tries) {
    const place = wholeFolder(folder);
    const before = inodeOf(place);
    try {
      const value = read(place);
      if (tries === mostTries || inodeOf(place) === before) return value;
    } catch (error) {
      if (tries === mostTries || inodeOf(place) === before) throw error;
    }
  }
}

function inodeOf(place: string): number | undefined {
  return lstatSync(place, { throwIfNoEntry: false })?.ino;
}

/** Replaces `folder` by copies of these files named 0001.json and so on; its parent must exist. */
export function replaceFolder(folder: string, files: readonly string[]): void {
  removeLeftovers(folder);
  const partial = partialName(folder);
  mkdirSync(partial);
  try {
    files.forEach((file, index) => {
      const copy = join(partial, `${String(index + 1).padStart(4, '0')}.json`);
      writeOwnFile(copy, [readFileSync(file)]);
    });
    putInPlace(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function putInPlace(partial: string, folder: string): void {
  const aside = asideOf(folder);
  for (let tries = 1; ; ++tries) {
    // If a process was killed between the two renames, only the old folder is left.
    if (existsSync(folder)) {
      rmSync(aside, { recursive: true, force: true });
      moveAside(folder, aside);
    }
    try {
      renameSync(partial, folder);
      break;
    } catch (error) {
      // Another process replaced it first.
      if (tries === mostTries || !hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    }
  }
  syncFolder(dirname(folder));
  rmSync(aside, { recursive: true, force: true });
}

function moveAside(folder: string, aside: string): void {
  try {
    renameSync(folder, aside);
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}

/** Removes what killed processes left beside `folder`, including the names of version 0.2. */
function removeLeftovers(folder: string): void {
  removePartials(folder);
  const prefix = `.${basename(folder)}.`;
  for (const name of readdirSync(dirname(folder))) {
    if (!name.startsWith(prefix) || !/^\d+$/.test(name.slice(prefix.length))) continue;
    rmSync(join(dirname(folder), name), { recursive: true, force: true });
  }
}

/** Removes `folder`, but first the old content, which must not reappear. */
export function removeFolder(folder: string): void {
  rmSync(asideOf(folder), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}
