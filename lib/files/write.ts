// Files written in one step: whoever looks, at whatever moment, finds the old one or the new one, whole.
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

import { fileFailure, hasCode } from './failures.js';
import { ownEntry, ownFile } from './own.js';
import { partialName, removePartials } from './partial.js';
import { beforeOf, targetOf, type Before } from './target.js';

/** What is written one behind the other; taken piece by piece, so that it need not be in memory at once. */
export type Pieces = Iterable<Uint8Array | string>;

/** Node writes at most 2 GiB at once. */
const mostBytes = 64 * 2 ** 20;

/**
 * Writes a file in one step: beside it first, on the disk before it gets its name. A process that is killed, or a disk
 * that is full, leaves the old file. A symbolic link stays, and what it leads to is written; a file that is replaced
 * keeps its mode. What is no file (`/dev/stdout`, a FIFO, a device) is written into as it is.
 *
 * @throws GradlinkError ERR_SYSTEM that names the file, what failed and what to do
 */
export function writeFileAtomic(path: string, pieces: Pieces): void {
  try {
    const target = targetOf(path);
    if (target.kind === 'file') replace(target.path, target.before, pieces);
    else if (target.kind === 'stream') writeInto(target.path, pieces);
    else writePieces(target.descriptor, pieces);
  } catch (cause) {
    throw fileFailure(path, 'written', cause);
  }
}

/**
 * As {@link writeFileAtomic}, under a name that gradlink makes itself: a link there is refused.
 *
 * @throws GradlinkError ERR_SYSTEM
 */
export function writeOwnFile(path: string, pieces: Pieces): void {
  ownFile(path);
  try {
    // The rename replaces a link that comes in between.
    replace(path, beforeOf(ownEntry(path, 'file')), pieces);
  } catch (cause) {
    throw fileFailure(path, 'written', cause);
  }
}

function replace(path: string, before: Before | undefined, pieces: Pieces): void {
  removePartials(path);
  const partial = partialName(path);
  const file = openSync(partial, 'wx');
  try {
    try {
      if (before !== undefined) keepRights(file, before);
      writePieces(file, pieces);
      // Before the rename: else a power cut may leave the new name with none of its bytes.
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

function keepRights(file: number, { mode, uid, gid }: Before): void {
  try {
    fchownSync(file, uid, gid);
  } catch (error) {
    // Only root may give files away.
    if (!hasCode(error, 'EPERM', 'EINVAL', 'ENOSYS', 'ENOTSUP')) throw error;
  }
  fchmodSync(file, mode);
}

function writeInto(path: string, pieces: Pieces): void {
  // Not 'a', which may also make a file.
  const file = openSync(path, constants.O_WRONLY | constants.O_APPEND);
  try {
    writePieces(file, pieces);
  } finally {
    closeSync(file);
  }
}

function writePieces(file: number, pieces: Pieces): void {
  for (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    for (let done = 0; done < bytes.length;) done += writeSome(file, bytes, done);
  }
}

function writeSome(file: number, bytes: Uint8Array, from: number): number {
  try {
    return writeSync(file, bytes, from, Math.min(bytes.length - from, mostBytes));
  } catch (error) {
    if (!hasCode(error, 'EAGAIN')) throw error;
    // A pipe that does not block and whose reader is slow.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    return 0;
  }
}

/** Puts the names in a folder on the disk, where its file system can. */
export function syncFolder(folder: string): void {
  let file: number;
  try {
    file = openSync(folder, 'r');
  } catch {
    // It may be written and not read.
    return;
  }
  try {
    fsyncSync(file);
  } catch (error) {
    if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'ENOSYS', 'EBADF', 'EROFS')) throw error;
  } finally {
    closeSync(file);
  }
}
