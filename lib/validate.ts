// Checks of numbers and names, all in the one formula of argument errors.
import { argumentError } from './errors.js';

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

/** An object of options; absent is an empty one. */
export function optionsObject<T extends object>(value: T | undefined): T {
  const given: unknown = value ?? {};
  if (typeof given !== 'object') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'options', 'an object', given);
  }
  return given as T;
}
