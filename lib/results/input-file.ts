// Files that somebody hands over to be read: whatever stands there is read as a whole, or refused in one sentence.
import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from 'node:fs';

import { GradlinkError, ruleError, type ArgumentError } from '../errors.js';

/** What nobody's report, plan or list comes near; a larger file is refused before it is in memory. */
export const largestInput = 128 * 2 ** 20;

/** The error of a file that is not what was asked for: `got` says in words what it is instead. */
export function inputError(file: string, expected: string, got: string): ArgumentError {
  return ruleError('ERR_INVALID_ARG_VALUE', `${file} is not ${expected}: ${got}`);
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory';
  if (stats.isFIFO()) return 'a named pipe; write it to a file first';
  if (stats.isSocket()) return 'a socket';
  return 'a device';
}

/** The shell's `<(command)` and `/dev/stdin`: an open pipe, which somebody writes. */
function inheritedPipe(file: string): number | undefined {
  const [, number] = /^\/(?:dev|proc\/self)\/fd\/(\d+)$/.exec(file) ?? [];
  const descriptor = file === '/dev/stdin' ? 0 : number === undefined ? undefined : Number(number);
  if (descriptor === undefined) return undefined;
  const status = fstatSync(descriptor);
  // Node gives the programs that it starts a socket.
  return status.isFIFO() || status.isSocket() ? descriptor : undefined;
}

/**
 * Opens a regular file for reading, or takes a pipe that this process was given. Nothing else is opened: a named pipe
 * that nobody writes would wait forever.
 *
 * @param expected what the file should be, for messages
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) when it is no regular file, GradlinkError (`ERR_SYSTEM`) when it cannot
 * be opened
 */
export function openInput(file: string, expected: string): number {
  let descriptor: number | undefined;
  try {
    const pipe = inheritedPipe(file);
    if (pipe !== undefined) return pipe;
    const before = statSync(file);
    if (!before.isFile()) throw inputError(file, expected, kindOf(before));
    // Another thing may have come into its place since.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const opened = fstatSync(descriptor);
    if (!opened.isFile()) throw inputError(file, expected, kindOf(opened));
    return descriptor;
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor);
    throw unread(error, file, expected);
  }
}

/** The system's errors in the words of the package; others as they are. */
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
  // Files of /proc tell no size, and others grow while they are read.
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

/** Where bytes stop being UTF-8, for those that do. */
function firstBad(bytes: Buffer): number {
  // What stands before the first replaced character is as it was, byte for byte.
  const text = bytes.toString('utf8');
  let byte = 0;
  for (let from = 0; ;) {
    const at = text.indexOf('\ufffd', from);
    byte += Buffer.byteLength(text.slice(from, at));
    // The character itself may be meant.
    if (bytes.readUIntBE(byte, Math.min(3, bytes.length - byte)) !== 0xefbfbd) return byte;
    byte += 3;
    from = at + 1;
  }
}

/**
 * The text of a regular file.
 *
 * @param expected what the file should be, for messages: `a report that --format json wrote`
 * @param most bytes that it may have
 * @throws TypeError (`ERR_INVALID_ARG_VALUE`) when it is no regular file, too large, empty or no UTF-8 text;
 * GradlinkError (`ERR_SYSTEM`) when it cannot be read
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
