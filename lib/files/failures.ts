// Errors of reading and writing files.
import { GradlinkError } from '../errors.js';

const advice: Readonly<Record<string, string>> = {
  ENOSPC: 'free space on that file system, or name a file on another',
  EDQUOT: 'free some of what the quota allows, or name a file elsewhere',
  EFBIG: 'raise the limit on the size of files (ulimit -f), or name a file on another file system',
  EACCES: 'give this user access to it, or name another',
  EPERM: 'give this user access to it, or name another',
  EROFS: 'name a file on a file system that can be written',
  ENOENT: 'make its folder first, or correct the name',
  ENOTDIR: 'part of the path is a file: correct the name',
  EISDIR: 'it is a directory: name a file',
  ELOOP: 'its symbolic links form a loop: remove one',
  ENAMETOOLONG: 'choose a shorter name',
  EMFILE: 'raise the limit on open files (ulimit -n)',
  EIO: 'the disk or its connection is failing: look at the system log',
};

/** Whether an error has one of these system codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && codes.includes(code);
}

/**
 * "FILE cannot be written: ENOSPC: no space left on device, write; free space …". Errors of the package are returned
 * unchanged.
 */
export function fileFailure(path: string, what: 'read' | 'written', cause: unknown): GradlinkError {
  if (cause instanceof GradlinkError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  const code: unknown = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const todo = typeof code === 'string' ? advice[code] : undefined;
  const text = `${path} cannot be ${what}: ${message}`;
  return new GradlinkError('ERR_SYSTEM', todo === undefined ? text : `${text}; ${todo}`, {
    cause,
    usable: true,
  });
}
