// Folders that are replaced so that the old one or the new one is there, whatever ends the process. No system call that
// Node has exchanges two folders: the old one steps aside under a name by which it is found until the new one is there.
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

/** Beside `folder`: what it was before, while it is replaced. */
const asideOf = (folder: string): string => join(dirname(folder), `.${basename(folder)}.old`);

/** Where the content of `folder` is now. */
export function wholeFolder(folder: string): string {
  const aside = asideOf(folder);
  return !existsSync(folder) && existsSync(aside) ? aside : folder;
}

/** The name of the folder whose content an entry beside it may be. */
export function wholeName(entry: string): string {
  return /^\.(.*)\.old$/.exec(entry)?.[1] ?? entry;
}

const mostTries = 10;

/** Reads from `folder`, again where another process replaced it meanwhile: files of two would be mixed. */
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

/** Replaces `folder` by one with copies of these files as 0001.json and so on; its parent is there. */
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
    // Where a process was killed between the two renames, what stands aside is all there is.
    if (existsSync(folder)) {
      rmSync(aside, { recursive: true, force: true });
      moveAside(folder, aside);
    }
    try {
      renameSync(partial, folder);
      break;
    } catch (error) {
      // Another process came first with the same name.
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

/** What processes that were killed left beside `folder`, 0.2's too, which named it after itself and its number. */
function removeLeftovers(folder: string): void {
  removePartials(folder);
  const prefix = `.${basename(folder)}.`;
  for (const name of readdirSync(dirname(folder))) {
    if (!name.startsWith(prefix) || !/^\d+$/.test(name.slice(prefix.length))) continue;
    rmSync(join(dirname(folder), name), { recursive: true, force: true });
  }
}

/** Removes `folder`, and what stands aside first: it must not come back. */
export function removeFolder(folder: string): void {
  rmSync(asideOf(folder), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}
