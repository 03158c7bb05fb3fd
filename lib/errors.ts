import { join } from 'node:path';

import { beginAtCaller } from './caller.js';
import { packageFolder } from './package-folder.js';
import { printable, printableLines } from './printable.js';

/** The stable name of a runtime error. `docs/troubleshooting.md` has the cause and remedy of each. */
export type ErrorCode =
  /** A rank died, was killed or left. */
  | 'ERR_PEER_LOST'
  /** A rank did not arrive before the deadline. */
  | 'ERR_TIMEOUT'
  /** Ranks called different operations, counts, element types, reduce operations or roots. */
  | 'ERR_MISMATCH'
  /** abort() was called, here or on a peer, or an AbortSignal ended an operation in progress. */
  | 'ERR_ABORTED'
  /** Used after close(). */
  | 'ERR_CLOSED'
  /** This backend or store does not support it. */
  | 'ERR_UNSUPPORTED'
  /** A library, a device or the native addon is missing. */
  | 'ERR_BACKEND_UNAVAILABLE'
  | 'ERR_OUT_OF_MEMORY'
  /** A system call failed; the message carries the system's text. */
  | 'ERR_SYSTEM'
  /** A defect of gradlink itself. */
  | 'ERR_INTERNAL';

/** Data of a {@link GradlinkError}. */
export interface ErrorDetails {
  /** The rank that caused the error. */
  readonly rank?: number;
  /** The operation that failed, `'allReduce'` for example. */
  readonly op?: string;
  /** Whether the communicator or store can still be used. */
  readonly usable?: boolean;
  /** The error that led to this one. */
  readonly cause?: unknown;
}

/**
 * Every failure except misuse, which is a `TypeError` or `RangeError` with a `code` (see {@link ArgumentErrorCode}).
 */
export class GradlinkError extends Error {
  /** The error code: compare this, not the message. */
  readonly code: ErrorCode;
  /** The rank that caused the error, if known. */
  declare readonly rank?: number;
  /** The operation that failed, if known. */
  declare readonly op?: string;
  /** Whether the communicator or store can still be used: a lost peer or an abort poisons it, misuse does not. */
  readonly usable: boolean;
  /** The section on this code in `docs/troubleshooting.md` of the installed package. */
  readonly help: string;

  constructor(code: ErrorCode, message: string, given?: ErrorDetails) {
    const details = given ?? {};
    // It may contain text from a file, such as a checkpoint's label.
    const said = typeof (message as unknown) === 'string' ? printableLines(message) : message;
    super(said, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.usable = details.usable ?? false;
    this.help = helpFor(code);
    if (details.rank !== undefined) this.rank = details.rank;
    if (details.op !== undefined) this.op = details.op;
    // An internal error needs the library's own frames.
    if (code !== 'ERR_INTERNAL') beginAtCaller(this);
  }

  static {
    Object.defineProperty(this.prototype, 'name', {
      value: 'GradlinkError',
      configurable: true,
      writable: true,
    });
  }
}

/** The page with a section for each code, in a checkout and in the installed package. */
const page = 'docs/troubleshooting.md';

/**
 * The path of an error code's section: it needs no network and fits the installed version. Inside another program's
 * bundle the path is relative to gradlink's folder.
 */
function helpFor(code: string): string {
  // An error must not fail over bad arguments.
  const known = typeof (code as unknown) === 'string';
  const section = known ? `${page}#${code.toLowerCase()}` : page;
  const folder = packageFolder();
  return folder === undefined ? section : join(folder, section);
}

/** The `code` of a `TypeError` or `RangeError` thrown for misuse. */
export type ArgumentErrorCode =
  | 'ERR_INVALID_ARG_TYPE'
  | 'ERR_INVALID_ARG_VALUE'
  | 'ERR_OUT_OF_RANGE'
  | 'ERR_BUFFER_IN_USE'
  | 'ERR_BUFFER_OVERLAP';

/** An error of misuse, with its code. */
export type ArgumentError = (TypeError | RangeError) & {
  /** The misuse code: compare this, not the message. */
  readonly code: ArgumentErrorCode;
  /** As {@link GradlinkError.help}; some errors of the native addon have none. */
  readonly help?: string;
};

/** A value as messages show it: short, with strings distinct from numbers. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${printable(value.length > 60 ? `${value.slice(0, 57)}…` : value)}'`;
    case 'bigint':
      return `${value}n`;
    case 'function':
      return value.name === '' ? 'a function' : `the function ${value.name}`;
    case 'object':
      return describeObject(value);
    default:
      return String(value);
  }
}

function describeObject(value: object | null): string {
  if (value === null) return 'null';
  try {
    if (Array.isArray(value)) return `an array of ${value.length}`;
    const name: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name;
    const length =
      ArrayBuffer.isView(value) && 'length' in value ? ` of ${String(value.length)}` : '';
    return typeof name !== 'string' || name === 'Object'
      ? 'an object'
      : `${article(name)} ${name}${length}`;
  } catch {
    // Its getters or proxy throw.
    return 'an object';
  }
}

function article(name: string): string {
  // "a Uint8Array": U is pronounced "you".
  return /^[AEIO]/.test(name) ? 'an' : 'a';
}

/**
 * A misuse error in the formula "expected EXPECTED for NAME, got GOT".
 *
 * @param got - the offending value, or its description as `{ text }`.
 */
export function argumentError(
  code: ArgumentErrorCode,
  name: string,
  expected: string,
  got: unknown,
): ArgumentError {
  const shown = isText(got) ? got.text : describe(got);
  // A name may come from the caller, such as a file's.
  const named = typeof (name as unknown) === 'string' ? name : describe(name);
  return ruleError(code, `expected ${expected} for ${named}, got ${shown}`);
}

/** A misuse error for a broken rule about valid values: states the rule, "gpu and gpus cannot be combined". */
export function ruleError(code: ArgumentErrorCode, rule: string): ArgumentError {
  const message = printableLines(rule);
  const error = code === 'ERR_OUT_OF_RANGE' ? new RangeError(message) : new TypeError(message);
  return beginAtCaller(Object.assign(error, { code, help: helpFor(code) }));
}

function isText(got: unknown): got is { readonly text: string } {
  return (
    typeof got === 'object' &&
    got !== null &&
    Object.keys(got).length === 1 &&
    typeof (got as { text?: unknown }).text === 'string'
  );
}
