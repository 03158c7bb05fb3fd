// Reads files given by the user: completely, or with an error in one sentence.
import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs';

import { GradlinkError, ruleError, type ArgumentError } from '../errors.js';

/** Far more than any report, plan or list; a larger file is refused unread. */
export const largestInput = 128 * 2 ** 20;

/** The error of a wrong file: `got` describes its content. */
export function inputError(file: string, expected: string, got: string): ArgumentError {
  return ruleError('ERR_INVALID_ARG_VALUE', `${file} is not ${expected}: ${got}`);
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory';
  if (stats.isFIFO()) return 'a named pipe; write it to a file first';
  if (stats.isSocket()) return 'a socket';
  return 'a device';
}

/** An inherited pipe, from the shell's `<(command)` or as `/dev/stdin`. */
function inheritedPipe(file: string): number | undefined {
  const [, number] = /^\/(?:dev|proc\/self)\/fd\/(\d+)$/.exec(file) ?? [];
  const descriptor = file === '/dev/stdin' ? 0 : number === undefined ? undefined : Number(number);
  if (descriptor === undefined) return undefined;
  const status = fstatSync(descriptor);
  // Node gives its child processes sockets.
  return status.isFIFO() || status.isSocket() ? descriptor : undefined;
}

/**
 * Opens a regular file or an inherited pipe for reading. A named pipe without a writer would block forever.
 *
 * @param expected the expected content, for messages
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) if it is not a regular file, GradlinkError (`ERR_SYSTEM`) if it cannot be
 *   opened
 */
export function openInput(file: string, expected: string): number {
  let descriptor: number | undefined;
  try {
    const pipe = inheritedPipe(file);
    if (pipe !== undefined) return pipe;
    const before = statSync(file);
    if (!before.isFile()) throw inputError(file, expected, kindOf(before));
    // It may have been replaced since.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const opened = fstatSync(descriptor);
    if (!opened.isFile()) throw inputError(file, expected, kindOf(opened));
    return descriptor;
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor);
    throw unread(error, file, expected);
  }
}

/** Wraps system errors; others stay as they are. */
function unread(error: unknown, file: string, expected: string): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  const message = `${file} cannot be read as ${expected}: ${error.message}`;
  return new GradlinkError('ERR_SYSTEM', message, { usable: true, cause: error });
}

const mebibytes = (bytes: number): string => `${String(Math.ceil(bytes / 2 ** 20))} MiB`;

function readAll(descriptor: number, file: string, expected: string, most: number): Buffer {
  const tooLarge = (size: string): ArgumentError =>
    inputError(file, expected, `${size}, where at most ${mebibytes(most)} are read`);
  const { size } = fstatSync(descriptor);
  if (size > most) throw tooLarge(mebibytes(size));
  // Files of /proc have no size, and others may grow.
  const parts: Buffer[] = [];
  for (let length = 0; ;) {
    const part = Buffer.allocUnsafe(Math.max(size + 1 - length, 64 * 1024));
    const count = readSync(descriptor, part, 0, part.length, null);
    if (count === 0) return Buffer.concat(parts, length);
    length += count;
    if (length > most) throw tooLarge('it grows while it is read');
    parts.push(part.subarray(0, count));
  }
}

/** The position of the first byte that is not UTF-8. */
function firstBad(bytes: Buffer): number {
  // Text before the first replacement character is unchanged.
  const text = bytes.toString('utf8');
  let byte = 0;
  for (let from = 0; ;) {
    const at = text.indexOf('\ufffd', from);
    byte += Buffer.byteLength(text.slice(from, at));
    // The file may contain the replacement character itself.
    if (bytes.readUIntBE(byte, Math.min(3, bytes.length - byte)) !== 0xefbfbd) return byte;
    byte += 3;
    from = at + 1;
  }
}

/**
 * Reads the text of a regular file.
 *
 * @param expected the expected content, for messages: `a report that --format json wrote`
 * @param most maximum bytes
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) if it is not a regular file, too large, empty or not UTF-8; GradlinkError
 *   (`ERR_SYSTEM`) if it cannot be read
 */
export function readInput(file: string, expected: string, most = largestInput): string {
  const descriptor = openInput(file, expected);
  let bytes: Buffer;
  try {
    bytes = readAll(descriptor, file, expected, most);
  } catch (error) {
    throw unread(error, file, expected);
  } finally {
    closeSync(descriptor);
  }
  if (bytes.length === 0) throw inputError(file, expected, 'an empty file');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    const at = String(firstBad(bytes));
    throw inputError(file, expected, `bytes that are not UTF-8 text (at byte ${at})`);
  }
}
