// Opens files for reading; only regular files have a reliable end.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  statSync,
  type Stats,
} from 'node:fs';

import { GradlinkError } from '../errors.js';
import { hasCode } from './failures.js';

/**
 * The status of a path; undefined if nothing is there.
 *
 * @throws the system's error if its parent is not a folder, which Node's `throwIfNoEntry` ignores from 22 on
 */
export function statusOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** An open file; the caller closes it. */
export interface OpenFile {
  readonly descriptor: number;
  readonly bytes: number;
}

/** @throws the system's error; GradlinkError ERR_SYSTEM unless it is a regular file. */
export function openRegular(path: string): OpenFile {
  // Without O_NONBLOCK, opening a FIFO without a writer would block forever.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const status = fstatSync(descriptor);
  if (status.isFile()) return { descriptor, bytes: status.size };
  closeSync(descriptor);
  const message = `${path} cannot be read: expected a regular file; name another`;
  throw new GradlinkError('ERR_SYSTEM', message, { usable: true });
}

/** A file of at most `most` bytes; a longer one is refused unread. */
export function readRegular(path: string, most: number): Buffer {
  const { descriptor, bytes } = openRegular(path);
  try {
    if (bytes > most) throw new Error(`it has ${bytes} bytes, expected at most ${most}`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
