// Where a path leads: through symbolic links, also to a file that is still to be made, and to what is no file.
import { readlinkSync, realpathSync, statSync, type Stats } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import { GradlinkError } from '../errors.js';
import { hasCode } from './failures.js';

/** As the kernel. */
const mostLinks = 40;

/** What writing to a path comes to. */
export type Target =
  /** A file that is replaced or made; its mode and owner where there is one. */
  | { readonly kind: 'file'; readonly path: string; readonly before?: Before | undefined }
  /** A device, a FIFO: it is written into as it is. */
  | { readonly kind: 'stream'; readonly path: string }
  /** A descriptor of this process, `/dev/stdout` for example. */
  | { readonly kind: 'descriptor'; readonly descriptor: number };

/** What the file was that is replaced. */
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
 * @throws the system's error where its folder is not there, and as it does where links lead in a circle; GradlinkError ERR_SYSTEM for a directory or a socket.
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
  // As the system says it, so that what to do is told in one place (failures.ts).
  throw Object.assign(new Error('ELOOP: too many symbolic links'), { code: 'ELOOP' });
}

/** Opening one anew through /proc would begin at the start of the file that another process also writes. */
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
