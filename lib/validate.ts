// Checks of numbers, names and options, all in the one formula of argument errors.
import { argumentError } from './errors.js';
import type { ArgumentError } from './errors.js';
import { nearest } from './nearest.js';

/** An integer from low to high, both included. */
export function integer(value: unknown, name: string, low: number, high: number): number {
  if (typeof value !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, `an integer ${range(low, high)}`, value);
  }
  if (!Number.isInteger(value) || value < low || value > high) {
    throw argumentError('ERR_OUT_OF_RANGE', name, `an integer ${range(low, high)}`, value);
  }
  return value;
}

function range(low: number, high: number): string {
  return high === maxInt32 || high === Number.MAX_SAFE_INTEGER
    ? `of at least ${low}`
    : `from ${low} to ${high}`;
}

/** The largest number native code holds in an int. */
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
  const text = list.length === 0 ? 'none' : 'one twice';
  throw argumentError('ERR_INVALID_ARG_VALUE', 'ranks', 'at least one rank, each once', { text });
}

/** Milliseconds above 0, Infinity included; `fallback` when absent. */
export function milliseconds(value: unknown, name: string, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'a number of milliseconds above 0', value);
  }
  if (!(value > 0)) {
    throw argumentError('ERR_OUT_OF_RANGE', name, 'a number of milliseconds above 0', value);
  }
  return value;
}

/** A boolean; `fallback` when absent. */
export function flag(value: unknown, name: string, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== 'boolean') {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'true or false', value);
  }
  return value;
}

/** A number that is neither infinite nor NaN. */
export function finiteNumber(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a finite number', value);
  }
  return value;
}

/** A function that the caller gives. */
export function callback<F>(value: F, name: string): F {
  if (typeof value !== 'function') {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'a function', value);
  }
  return value;
}

/** A list, as JavaScript has them. */
export function arrayOf(value: unknown, name: string, expected = 'an array'): readonly unknown[] {
  if (!Array.isArray(value)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
  }
  return value as readonly unknown[];
}

/** A class by what `instanceof` needs of it: constructors may be protected, or be native code's own. */
interface AnyClass {
  readonly prototype: object;
}

const isMadeBy = (value: unknown, by: AnyClass): boolean =>
  value instanceof (by as abstract new () => object);

/** An object of this class. */
export function instanceOf<T extends object>(
  value: unknown,
  of: { readonly prototype: T },
  name: string,
  expected: string,
): T {
  if (!isMadeBy(value, of)) throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
  return value as T;
}

/** Refuses what is no AbortSignal; those of other realms are as good. */
export function assertSignal(value: unknown): asserts value is AbortSignal {
  const { throwIfAborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>;
  if (typeof throwIfAborted === 'function' && typeof addEventListener === 'function') return;
  throw argumentError('ERR_INVALID_ARG_TYPE', 'signal', 'an AbortSignal', value);
}

/**
 * For constructors that are no part of the interface: `made` is what this package alone can hand over.
 *
 * @param instead - what to call, for the message
 */
export function assertMade(made: unknown, by: object, name: string, instead: string): void {
  if (!isMadeBy(made, by as AnyClass)) throw notConstructed(name, instead);
}

/** The error of a constructor that is no part of the interface. */
export function notConstructed(name: string, instead: string): ArgumentError {
  return argumentError('ERR_INVALID_ARG_VALUE', name, `${instead} to make one`, {
    text: `new ${name}()`,
  });
}

/** A string that is not empty. */
export function nonEmpty(value: unknown, name: string): string {
  if (typeof value !== 'string') {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'a string that is not empty', value);
  }
  if (value === '') {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a string that is not empty', value);
  }
  return value;
}

/** The options that a call knows, see {@link optionNames}. */
export type KnownOptions = ReadonlySet<string>;

/** Each option of `O`, which the compiler keeps complete: made once a call, asked by name. */
export function optionNames<O extends object>(
  names: Readonly<Record<keyof O, true>>,
): KnownOptions {
  return new Set(Object.keys(names));
}

const noOptions = Object.freeze({});

/**
 * An object of options that are all known; absent is an empty one. A misspelt option would be without effect.
 *
 * @param owner - the call, for messages
 * @throws TypeError for anything but an object, and for an option that is not one of `known`.
 */
export function optionsObject<T extends object>(
  value: T | undefined,
  known: KnownOptions,
  owner: string,
): T {
  // Most small calls have none.
  const given: unknown = value;
  if (given === undefined || given === null) return noOptions as T;
  if (typeof given !== 'object') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'options', 'an object', given);
  }
  // Nothing is made on the way: small calls are counted in nanoseconds.
  for (const name in given) {
    if (!known.has(name)) throw unknownOption(name, [...known], owner);
  }
  return given as T;
}

/** The error of an option that is not one of `known`: it names the nearest and all others. */
export function unknownOption(
  name: string,
  known: readonly string[],
  owner: string,
): ArgumentError {
  const meant = nearest(name, known);
  const advice = meant === undefined ? '' : ` (the nearest is '${meant}')`;
  const all = [...known].sort().join(', ');
  return argumentError('ERR_INVALID_ARG_VALUE', `options of ${owner}`, `some of ${all}`, {
    text: `'${name}'${advice}`,
  });
}
