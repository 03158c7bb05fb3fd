// Writes files atomically: a reader finds either the old or the new content.
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

/** Consecutive pieces, generated one by one to save memory. */
export type Pieces = Iterable<Uint8Array | string>;

/** Node writes at most 2 GiB at once. */
const mostBytes = 64 * 2 ** 20;

/**
 * Writes a file atomically: to a partial file, synced before the rename. A killed process or a full disk leaves the old
 * file. Symbolic links are followed; a replaced file keeps its mode. `/dev/stdout`, FIFOs and devices are written in
 * place.
 *
 * @throws GradlinkError ERR_SYSTEM with the file, the error and the remedy
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
 * As {@link writeFileAtomic} for one of gradlink's own names: links are refused.
 *
 * @throws GradlinkError ERR_SYSTEM
 */
export function writeOwnFile(path: string, pieces: Pieces): void {
  ownFile(path);
  try {
    // The rename replaces a link created since.
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
      // Before the rename: otherwise a power failure may leave the new name without its content.
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
    // Only root may change owners.
    if (!hasCode(error, 'EPERM', 'EINVAL', 'ENOSYS', 'ENOTSUP')) throw error;
  }
  fchmodSync(file, mode);
}

function writeInto(path: string, pieces: Pieces): void {
  // Not 'a', which may create a file.
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
    // A nonblocking pipe with a slow reader.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    return 0;
  }
}

/** Syncs a folder's entries if the file system supports it. */
export function syncFolder(folder: string): void {
  let file: number;
  try {
    file = openSync(folder, 'r');
  } catch {
    // It may be writable but not readable.
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
