// Checks of arguments: numbers, names, options, and structured values by a table of their parts. All errors use one
// formula.
import { argumentError, describe } from './errors.js';
import type { ArgumentError, ArgumentErrorCode } from './errors.js';
import { meantBy } from './nearest.js';

/** Throws an argument error for `name` if the value is invalid. */
export type Kind = (value: unknown, name: string) => unknown;

const kindOf =
  (expected: string, holds: (value: unknown) => boolean) =>
  <V>(value: V, name: string): V => {
    if (!holds(value)) throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
    return value;
  };

export const aNumber = kindOf('a number', (value) => typeof value === 'number');
export const aString = kindOf('a string', (value) => typeof value === 'string');
export const aBoolean = kindOf('true or false', (value) => typeof value === 'boolean');
export const aFunction = kindOf('a function', (value) => typeof value === 'function');
export const anObject = kindOf('an object', (value) => typeof value === 'object' && value !== null);
export const anIterable = kindOf(
  'an iterable',
  (value) =>
    typeof (value as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] ===
    'function',
);

export function arrayOf(value: unknown, name: string, expected = 'an array'): readonly unknown[] {
  if (!Array.isArray(value)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
  }
  return value as readonly unknown[];
}

/** Chooses between the TypeError and the RangeError of a number. */
function wrongNumber(value: unknown, name: string, expected: string): ArgumentError {
  const code = typeof value === 'number' ? 'ERR_OUT_OF_RANGE' : 'ERR_INVALID_ARG_TYPE';
  return argumentError(code, name, expected, value);
}

/** An integer from low to high, both included. */
export function integer(value: unknown, name: string, low: number, high: number): number {
  if (Number.isInteger(value) && (value as number) >= low && (value as number) <= high) {
    return value as number;
  }
  throw wrongNumber(value, name, `an integer ${range(low, high)}`);
}

function range(low: number, high: number): string {
  return high === maxInt32 || high === Number.MAX_SAFE_INTEGER
    ? `of at least ${low}`
    : `from ${low} to ${high}`;
}

/** The largest value of native code's int. */
export const maxInt32 = 2 ** 31 - 1;

/** A rank of a group of `size`; `fallback` when absent. */
export function rankOf(value: unknown, name: string, size: number, fallback?: number): number {
  if (value === undefined && fallback !== undefined) return fallback;
  return integer(value, name, 0, size - 1);
}

/** At least one rank of `size`, each once. */
export function distinctRanks(given: unknown, size: number): number[] {
  const list = arrayOf(given, 'ranks', 'an array of ranks').map((rank, i) =>
    rankOf(rank, `ranks[${i}]`, size),
  );
  if (list.length > 0 && new Set(list).size === list.length) return list;
  const twice = list.find((rank, i) => list.indexOf(rank) < i);
  const text = twice === undefined ? 'an empty array' : `rank ${twice} twice`;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'ranks', 'at least one rank, each once', { text });
}

/** Milliseconds above 0, Infinity included; `fallback` when absent. */
export function milliseconds(value: unknown, name: string, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && value > 0) return value;
  throw wrongNumber(value, name, 'a number of milliseconds above 0');
}

/** A boolean; `fallback` when absent. */
export function flag(value: unknown, name: string, fallback: boolean): boolean {
  return value === undefined ? fallback : (aBoolean(value, name) as boolean);
}

/** A number that is neither infinite nor NaN. */
export function finiteNumber(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a finite number', value);
  }
  return value;
}

/** A finite number of at least 0: bytes, seconds, counts. */
export const anAmount: Kind = (value, name) => {
  if (typeof value === 'number' && value >= 0 && value < Infinity) return;
  throw wrongNumber(value, name, 'a finite number of at least 0');
};

/** A number that is more than 0, and finite. */
export const aPositive: Kind = (value, name) => {
  if (typeof value === 'number' && value > 0 && value < Infinity) return;
  throw wrongNumber(value, name, 'a finite number above 0');
};

export const anInteger =
  (low: number, high: number): Kind =>
  (value, name) =>
    integer(value, name, low, high);

/** A class as `instanceof` needs it: constructors may be protected or native. */
interface AnyClass {
  readonly prototype: object;
}

const isMadeBy = (value: unknown, by: AnyClass): boolean =>
  value instanceof (by as abstract new () => object);

export function instanceOf<T extends object>(
  value: unknown,
  of: { readonly prototype: T },
  name: string,
  expected: string,
): T {
  if (!isMadeBy(value, of)) throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
  return value as T;
}

/** Refuses anything but an AbortSignal; those of other realms are accepted. */
export function assertSignal(value: unknown): asserts value is AbortSignal {
  const { throwIfAborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>;
  if (typeof throwIfAborted === 'function' && typeof addEventListener === 'function') return;
  throw argumentError('ERR_INVALID_ARG_TYPE', 'signal', 'an AbortSignal', value);
}

/**
 * For constructors that are not public: `made` must come from this package.
 *
 * @param instead - the function to call, for the message
 */
export function assertMade(made: unknown, by: object, name: string, instead: string): void {
  if (!isMadeBy(made, by as AnyClass)) throw notConstructed(name, instead);
}

/** The error of a constructor that is not public. */
export function notConstructed(name: string, instead: string): ArgumentError {
  return argumentError('ERR_INVALID_ARG_VALUE', name, `${instead} to make one`, {
    text: `new ${name}()`,
  });
}

/** A string that is not empty. */
export function nonEmpty(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value;
  const code = value === '' ? 'ERR_INVALID_ARG_VALUE' : 'ERR_INVALID_ARG_TYPE';
  throw argumentError(code, name, 'a string that is not empty', value);
}

/** {@link nonEmpty} without lone surrogates: UTF-8 would turn all of these into the same character. */
export function wellFormed(value: unknown, name: string): string {
  const text = nonEmpty(value, name);
  assertWellFormed(text, name);
  return text;
}

/** Refuses text with a lone surrogate. The engine's own check is fast for the common case. */
export function assertWellFormed(text: string, name: string): void {
  // Node 20 has it; the type library does not.
  if ((text as unknown as { isWellFormed(): boolean }).isWellFormed()) return;
  throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a string without lone surrogates', {
    text: `one with ${String(loneSurrogate(text))}`,
  });
}

/** The first lone surrogate as `\ud800`; undefined if the text is well formed. */
function loneSurrogate(text: string): string | undefined {
  for (const letter of text) {
    const code = letter.codePointAt(0)!;
    if (code >= 0xd800 && code <= 0xdfff) return `\\u${code.toString(16)}`;
  }
  return undefined;
}

export function oneOf<T extends string>(value: unknown, name: string, words: readonly T[]): T {
  if (words.includes(value as T)) return value as T;
  throw notOneOf(value, name, words);
}

/** The value as messages show it, with the nearest word if there is one. */
export function withMeant(value: unknown, words: readonly string[]): string {
  const meant = typeof value === 'string' ? meantBy(value, words) : undefined;
  return meant === undefined ? describe(value) : `${describe(value)} (did you mean ${meant}?)`;
}

/** The error of a value that is not one of `words`: lists them, and names the likely one. */
export function notOneOf(
  value: unknown,
  name: string,
  words: readonly string[],
  { code = 'ERR_INVALID_ARG_VALUE', more = '' }: NotOneOfOptions = {},
): ArgumentError {
  const text = withMeant(value, words);
  return argumentError(code, name, `one of ${words.join(', ')}${more}`, { text });
}

interface NotOneOfOptions {
  readonly code?: ArgumentErrorCode;
  /** Text after the list. */
  readonly more?: string;
}

/** {@link oneOf}. */
export const oneOfWords =
  (words: readonly string[]): Kind =>
  (value, name) =>
    oneOf(value, name, words);

/** Also accepts undefined. */
export const orAbsent =
  (kind: Kind): Kind =>
  (value, name) => {
    if (value !== undefined) kind(value, name);
  };

/** Also accepts null. */
export const orNull =
  (kind: Kind): Kind =>
  (value, name) => {
    if (value !== null) kind(value, name);
  };

/** An array whose items are all of this kind. */
export const listOf =
  (kind: Kind): Kind =>
  (value, name) => {
    const list = arrayOf(value, name);
    // By index: forEach skips the holes of a sparse array.
    for (let i = 0; i < list.length; i += 1) kind(list[i], `${name}[${i}]`);
  };

/** {@link listOf} with at least one item. */
export const someOf = (kind: Kind): Kind => {
  const list = listOf(kind);
  return (value, name) => {
    list(value, name);
    if ((value as unknown[]).length > 0) return;
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'an array of at least one', value);
  };
};

/** An object with these properties. It may have others. */
export const having = (fields: Readonly<Record<string, Kind>>): Kind => {
  const each = Object.entries(fields);
  return (value, name) => {
    anObject(value, name);
    for (const [field, kind] of each) {
      kind((value as Readonly<Record<string, unknown>>)[field], `${name}.${field}`);
    }
  };
};

/** The options that a call knows, see {@link optionNames}. */
export type KnownOptions = ReadonlySet<string>;

/** The options of `O`; the compiler keeps the list complete. Built once per function. */
export function optionNames<O extends object>(
  names: Readonly<Record<keyof O, true>>,
): KnownOptions {
  return new Set(Object.keys(names));
}

const noOptions = Object.freeze({});

/**
 * An options object with known names only; absent means empty. Otherwise a misspelt option would have no effect.
 *
 * @param owner - the function, for messages
 * @throws TypeError for anything but an object, and for an option that is not one of `known`.
 */
export function optionsObject<T extends object>(
  value: T | undefined,
  known: KnownOptions,
  owner: string,
): T {
  const given: unknown = value;
  if (given === undefined || given === null) return noOptions as T;
  if (typeof given !== 'object') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'options', 'an object', given);
  }
  // No allocations: small calls take nanoseconds.
  for (const name in given) {
    if (!known.has(name)) throw unknownOption(name, [...known], owner);
  }
  return given as T;
}

/** The error of an unknown option: names the likely one, and lists all. */
export function unknownOption(
  name: string,
  known: readonly string[],
  owner: string,
): ArgumentError {
  const all = [...known].sort().join(', ');
  const text = withMeant(name, known);
  return argumentError('ERR_INVALID_ARG_VALUE', `options of ${owner}`, `some of ${all}`, { text });
}
