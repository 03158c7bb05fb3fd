// What a value of many parts must be, said once as a table: for functions whose arguments are records and lists.
import { argumentError } from './errors.js';

/** Throws an argument error that names what is wrong; gives nothing. */
export type Kind = (value: unknown, name: string) => void;

const kindOf =
  (expected: string, holds: (value: unknown) => boolean): Kind =>
  (value, name) => {
    if (!holds(value)) throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
  };

export const aNumber = kindOf('a number', (value) => typeof value === 'number');
export const aString = kindOf('a string', (value) => typeof value === 'string');
export const aBoolean = kindOf('true or false', (value) => typeof value === 'boolean');
export const aFunction = kindOf('a function', (value) => typeof value === 'function');
export const anObject = kindOf('an object', isObject);
export const aList = kindOf('an array', Array.isArray);

/** What a loop can go over. */
export const anIterable = kindOf(
  'an iterable',
  (value) =>
    typeof (value as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] ===
    'function',
);

/** Whether it has properties that can be asked for. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** A finite number of at least 0: bytes, seconds, counts. */
export const anAmount: Kind = (value, name) => {
  aNumber(value, name);
  if (!((value as number) >= 0 && (value as number) < Infinity)) {
    throw argumentError('ERR_OUT_OF_RANGE', name, 'a finite number of at least 0', value);
  }
};

/** A number that is more than 0, and finite. */
export const aPositive: Kind = (value, name) => {
  aNumber(value, name);
  if (!((value as number) > 0 && (value as number) < Infinity)) {
    throw argumentError('ERR_OUT_OF_RANGE', name, 'a finite number above 0', value);
  }
};

/** An integer from low to high, both included. */
export const anInteger =
  (low: number, high: number): Kind =>
  (value, name) => {
    aNumber(value, name);
    if (Number.isInteger(value) && (value as number) >= low && (value as number) <= high) return;
    throw argumentError('ERR_OUT_OF_RANGE', name, `an integer from ${low} to ${high}`, value);
  };

/** One of these words. */
export const oneOfWords =
  (words: readonly string[]): Kind =>
  (value, name) => {
    if (words.includes(value as string)) return;
    throw argumentError('ERR_INVALID_ARG_VALUE', name, `one of ${words.join(', ')}`, value);
  };

/** Absent is as good. */
export const orAbsent =
  (kind: Kind): Kind =>
  (value, name) => {
    if (value !== undefined) kind(value, name);
  };

/** null is as good. */
export const orNull =
  (kind: Kind): Kind =>
  (value, name) => {
    if (value !== null) kind(value, name);
  };

/** An array, each of whose items is of this kind. */
export const listOf =
  (kind: Kind): Kind =>
  (value, name) => {
    aList(value, name);
    // By the index: forEach passes over the holes of a sparse array.
    for (let i = 0; i < (value as unknown[]).length; i += 1) {
      kind((value as unknown[])[i], `${name}[${i}]`);
    }
  };

/** {@link listOf}, of at least one. */
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
