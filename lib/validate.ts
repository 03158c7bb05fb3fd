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
  return high >= maxInt32 ? `of at least ${low}` : `from ${low} to ${high}`;
}

/** The largest number native code holds in an int. */
export const maxInt32 = 2 ** 31 - 1;

/** A rank of a group of `size`; `fallback` when absent. */
export function rankOf(value: unknown, name: string, size: number, fallback?: number): number {
  if (value === undefined && fallback !== undefined) return fallback;
  return integer(value, name, 0, size - 1);
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
