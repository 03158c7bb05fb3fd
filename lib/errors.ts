import { join } from 'node:path';

import { beginAtCaller } from './caller.js';
import { packageFolder } from './package-folder.js';
import { printable, printableLines } from './printable.js';

/** What can go wrong while running, as a stable name. `docs/troubleshooting.md` has cause and remedy of each. */
export type ErrorCode =
  /** A rank died, was killed or left. */
  | 'ERR_PEER_LOST'
  /** A rank did not come within the deadline. */
  | 'ERR_TIMEOUT'
  /** Ranks called different operations, counts, element types, reduce operations or roots. */
  | 'ERR_MISMATCH'
  /** Somebody called abort(), here or on a peer, or an AbortSignal ended an operation that had begun. */
  | 'ERR_ABORTED'
  /** Used after close(). */
  | 'ERR_CLOSED'
  /** This backend or store cannot do it. */
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
  /** The rank that is to blame. */
  readonly rank?: number;
  /** The operation that failed, `'allReduce'` for example. */
  readonly op?: string;
  /** Whether the communicator or store can still be used. */
  readonly usable?: boolean;
  /** The error that led to this one. */
  readonly cause?: unknown;
}

/**
 * Every failure that is not misuse. Misuse is a `TypeError` or `RangeError` with a `code`
 * (see {@link ArgumentErrorCode}).
 */
export class GradlinkError extends Error {
  /** Which error it is: programs compare this, not the message. */
  readonly code: ErrorCode;
  /** The rank that is to blame, where there is one. */
  declare readonly rank?: number;
  /** The operation that failed, where there is one. */
  declare readonly op?: string;
  /** Whether the communicator or store can still be used: a lost peer or an abort poisons it, misuse does not. */
  readonly usable: boolean;
  /** Where this code's cause and remedy are: a section of `docs/troubleshooting.md` in the installed package. */
  readonly help: string;

  constructor(code: ErrorCode, message: string, given?: ErrorDetails) {
    const details = given ?? {};
    // It may name what stands in a file, such as a label of a checkpoint, and be printed by anybody.
    const said = typeof (message as unknown) === 'string' ? printableLines(message) : message;
    super(said, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.usable = details.usable ?? false;
    this.help = helpFor(code);
    if (details.rank !== undefined) this.rank = details.rank;
    if (details.op !== undefined) this.op = details.op;
    // What is wrong here is the library's own.
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

/** The page with a section for each code, of the checkout and of an installed package alike. */
const page = 'docs/troubleshooting.md';

/**
 * The section of an error code, as a path: it needs no network, and fits the version that is installed. Inside a bundle
 * of somebody else's it is the path from gradlink's own folder.
 */
function helpFor(code: string): string {
  // An error made of anything at all is an error still.
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
  /** Which misuse it is: programs compare this, not the message. */
  readonly code: ArgumentErrorCode;
  /** As that of a {@link GradlinkError}; some errors of the native addon have none. */
  readonly help?: string;
};

/** Shows a value in a message: short, and telling strings from numbers. */
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
    // Its getters or its proxy throw: what is wrong with the value is said all the same.
    return 'an object';
  }
}

function article(name: string): string {
  // "a Uint8Array": the U is spoken "you".
  return /^[AEIO]/.test(name) ? 'an' : 'a';
}

/**
 * An error of misuse in the package's one formula, "expected EXPECTED for NAME, got GOT".
 *
 * @param got - the offending value, or, as `{ text }`, words for it.
 */
export function argumentError(
  code: ArgumentErrorCode,
  name: string,
  expected: string,
  got: unknown,
): ArgumentError {
  const shown = isText(got) ? got.text : describe(got);
  // A name may be the caller's own, such as that of a file.
  const named = typeof (name as unknown) === 'string' ? name : describe(name);
  return ruleError(code, `expected ${expected} for ${named}, got ${shown}`);
}

/** An error of misuse where each value is right and a rule is broken: the rule itself, "gpu and gpus cannot be combined". */
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
