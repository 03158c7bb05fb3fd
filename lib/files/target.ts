// Resolves the target of a path: through symbolic links, also for a new file, and for targets that are not files.
import { readlinkSync, realpathSync, statSync, type Stats } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import { GradlinkError } from '../errors.js';
import { hasCode } from './failures.js';

/** The kernel's limit. */
const mostLinks = 40;

/** The target of writing to a path. */
export type Target =
  /** A file to create or replace, with mode and owner of the existing one. */
  | { readonly kind: 'file'; readonly path: string; readonly before?: Before | undefined }
  /** A device or FIFO, which is written in place. */
  | { readonly kind: 'stream'; readonly path: string }
  /** A descriptor of this process, such as `/dev/stdout`. */
  | { readonly kind: 'descriptor'; readonly descriptor: number };

/** The replaced file. */
export interface Before {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export function beforeOf(status: Stats | undefined): Before | undefined {
  if (status === undefined) return undefined;
  const { mode, uid, gid } = status;
  return { mode: mode & 0o7777, uid, gid };
}

/**
 * Follows `path`.
 *
 * @throws the system's error if its folder is missing or links are circular; GradlinkError ERR_SYSTEM for a directory
 *   or a socket.
 */
export function targetOf(path: string): Target {
  let at = resolve(path);
  for (let links = 0; links < mostLinks; ++links) {
    const folder = realpathSync(dirname(at));
    at = join(folder, basename(at));
    const descriptor = ownDescriptor(folder, basename(at));
    if (descriptor !== undefined) return { kind: 'descriptor', descriptor };
    const next = linkOf(at);
    if (next === undefined) return targetAt(at, path);
    at = resolve(folder, next);
  }
  // In the system's form, so that failures.ts adds the remedy.
  throw Object.assign(new Error('ELOOP: too many symbolic links'), { code: 'ELOOP' });
}

/** Opening it through /proc would start at the beginning of a file that another process also writes. */
function ownDescriptor(folder: string, name: string): number | undefined {
  if (!/^\d+$/.test(name)) return undefined;
  const owner = /^\/proc\/(\d+)(?:\/task\/\d+)?\/fd$/.exec(folder);
  return owner?.[1] === String(process.pid) ? Number(name) : undefined;
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (hasCode(error, 'EINVAL', 'ENOENT')) return undefined;
    throw error;
  }
}

function targetAt(at: string, asked: string): Target {
  const status = statSync(at, { throwIfNoEntry: false });
  if (status === undefined) return { kind: 'file', path: at };
  if (status.isFile()) return { kind: 'file', path: at, before: beforeOf(status) };
  if (!status.isDirectory() && !status.isSocket()) return { kind: 'stream', path: at };
  const what = status.isDirectory() ? 'a directory' : 'a socket';
  throw new GradlinkError('ERR_SYSTEM', `${asked} cannot be written: it is ${what}; name a file`, {
    usable: true,
  });
}
