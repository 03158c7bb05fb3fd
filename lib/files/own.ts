// Names that gradlink makes itself, in a folder that the user named: checkpoint-5, rank-0.out, report.json. Others who can
// write there may have put a link under such a name, to have a file of ours overwritten or removed elsewhere. A link that
// the user names is followed (target.ts); one under a name of ours never is, nor is anything made in others' folders.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  type Stats,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { GradlinkError } from '../errors.js';
import { fileFailure, hasCode } from './failures.js';
import { makeFolders } from './folders.js';
import { partialName } from './partial.js';

const root = 0;

function refused(path: string, expected: string, got: string, todo: string): GradlinkError {
  const message = `${path} cannot be used: expected ${expected}, got ${got}; ${todo}`;
  return new GradlinkError('ERR_SYSTEM', message, { usable: true });
}

/** Who we are to this file system: one of a network or of a host may have another owner for all that we make. */
function ownerOfNew(folder: string): number | undefined {
  const probe = partialName(join(folder, 'owner'));
  try {
    const file = openSync(probe, 'wx');
    try {
      return fstatSync(file).uid;
    } finally {
      closeSync(file);
      rmSync(probe, { force: true });
    }
  } catch {
    return undefined;
  }
}

function isOurs({ uid }: Stats, folder: string): boolean {
  return uid === root || uid === process.geteuid?.() || uid === ownerOfNew(folder);
}

/**
 * Holds the folder that names of ours are made in against its owner: another user could exchange them at any moment.
 *
 * @throws GradlinkError ERR_SYSTEM
 */
export function checkFolder(folder: string): void {
  const status = statSync(folder);
  if (isOurs(status, folder)) return;
  const got = `one owned by user ${status.uid}`;
  throw refused(folder, 'a folder of this user or of root', got, 'make one, or name another');
}

/**
 * What is under a name of ours, itself; undefined where nothing is.
 *
 * @throws GradlinkError ERR_SYSTEM where it is a link, or not what gradlink makes there
 */
export function ownEntry(path: string, what: 'file' | 'folder'): Stats | undefined {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return undefined;
  if (what === 'file' ? status.isFile() : status.isDirectory()) return status;
  const isLink = status.isSymbolicLink();
  const got = isLink ? 'a symbolic link' : status.isDirectory() ? 'a directory' : 'another kind';
  throw refused(path, `a ${what}, since gradlink makes this name`, got, 'remove it');
}

/** Checks the name of a file of ours before it is made or replaced. */
export function ownFile(path: string): string {
  try {
    checkFolder(dirname(path));
    ownEntry(path, 'file');
    return path;
  } catch (cause) {
    throw fileFailure(path, 'written', cause);
  }
}

/** Whether there is a folder of ours under a name of ours, in which may be removed. */
export function isOwnFolder(path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  return status?.isDirectory() === true && isOurs(status, path);
}

/**
 * Makes a folder under a name of ours, or takes the one that is there. The folder around it, which the user named, is made
 * too.
 *
 * @throws GradlinkError ERR_SYSTEM
 */
export function makeOwnFolder(path: string): void {
  try {
    const around = dirname(path);
    makeFolders(around);
    checkFolder(around);
    try {
      mkdirSync(path);
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
      ownEntry(path, 'folder');
      checkFolder(path);
    }
  } catch (cause) {
    throw fileFailure(path, 'written', cause);
  }
}

/** Opens a file of ours to be written from its begin, for what comes bit by bit; the caller closes it. */
export function openOwnFile(path: string): number {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  return openSync(ownFile(path), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o666);
}
