// Names that gradlink creates in a folder chosen by the user: checkpoint-5, rank-0.out, report.json. Other users with
// write access could place a link there, to have another file overwritten or removed. Links named by the user are
// followed (target.ts); those under our names are not, and nothing is created in others' folders.
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

/** The owner of our new files on this file system, which a network or host may map to another user. */
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
 * Checks the owner of a folder for our files: another owner could exchange them at any time.
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
 * The entry under one of our names, without following links; undefined if there is none.
 *
 * @throws GradlinkError ERR_SYSTEM if it is a link, or not of the expected kind
 */
export function ownEntry(path: string, what: 'file' | 'folder'): Stats | undefined {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return undefined;
  if (what === 'file' ? status.isFile() : status.isDirectory()) return status;
  const isLink = status.isSymbolicLink();
  const got = isLink ? 'a symbolic link' : status.isDirectory() ? 'a directory' : 'another kind';
  throw refused(path, `a ${what}, since gradlink makes this name`, got, 'remove it');
}

/** Checks the name of our file before creating or replacing it. */
export function ownFile(path: string): string {
  try {
    checkFolder(dirname(path));
    ownEntry(path, 'file');
    return path;
  } catch (cause) {
    throw fileFailure(path, 'written', cause);
  }
}

/** Whether there is a folder of ours, whose content may be removed. */
export function isOwnFolder(path: string): boolean {
  const status = lstatSync(path, { throwIfNoEntry: false });
  return status?.isDirectory() === true && isOurs(status, path);
}

/**
 * Creates a folder of ours, or uses the existing one. Also creates the user's folder around it.
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

/** Opens a file of ours for writing from the start; the caller closes it. */
export function openOwnFile(path: string): number {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  return openSync(ownFile(path), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o666);
}
