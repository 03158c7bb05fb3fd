// Kinds of option values: parsed from a command line, and validated for programs.
import {
  aBoolean,
  arrayOf,
  milliseconds as aTime,
  nonEmpty,
  oneOf,
  type Kind as Check,
} from '../checks.js';
import { argumentError } from '../errors.js';
import { didYouMean, plainLetters } from '../nearest.js';

/** A typed value of the wrong kind; the message tells what was expected. */
export class WrongValue extends Error {
  override readonly name = 'WrongValue';
}

/** How a value is typed. */
export interface Typed<T> {
  /** @throws WrongValue */
  parse(text: string): T;
  /** As it is typed, where a command and a program give it in different forms. */
  show?(value: T): string | number | null;
  /** Suggestions for a shell. */
  readonly choices?: readonly string[];
  /** Of an option that may be repeated: its value so far, and one more. */
  join?(before: T, next: T): T;
}

export interface Kind<T> extends Typed<T> {
  /** @throws TypeError or RangeError with a code, for a value of a program */
  check(value: unknown, name: string): void;
}

/** Numbers with the same form for commands and programs. */
function numbers(
  expected: string,
  read: (text: string) => number,
  holds: (value: number) => boolean,
): Kind<number> {
  return {
    parse(text) {
      const value = read(text);
      if (!holds(value)) throw new WrongValue(`Expected ${expected}.`);
      return value;
    },
    check(value, name) {
      if (typeof value !== 'number') {
        throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
      }
      if (!holds(value)) throw argumentError('ERR_OUT_OF_RANGE', name, expected, value);
    },
  };
}

export interface Range {
  readonly min?: number;
  readonly max?: number;
}

function describeRange({ min, max }: Range): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (min !== undefined) return ` of at least ${min}`;
  return max === undefined ? '' : ` of at most ${max}`;
}

const within = (value: number, { min = -Infinity, max = Infinity }: Range): boolean =>
  value >= min && value <= max;

/** An integer in digits only (`1e3`, `0x10` and the empty string are errors). */
export function whole(range: Range = {}): Kind<number> {
  return numbers(
    `a whole number${describeRange(range)}`,
    (text) => (/^[+-]?\d+$/.test(text) ? Number(text) : NaN),
    (value) => Number.isSafeInteger(value) && within(value, range),
  );
}

/** A finite decimal number above a bound. */
export function above(bound: number): Kind<number> {
  return numbers(
    `a number greater than ${bound}`,
    (text) => (text.trim() === '' ? NaN : Number(text)),
    (value) => Number.isFinite(value) && value > bound,
  );
}

/** A decimal percentage, with or without the sign. */
export function percent(min: number, max: number): Kind<number> {
  return numbers(
    `percent${describeRange({ min, max })}`,
    (text) => Number(/^(\d+(?:\.\d+)?) ?%?$/.exec(text)?.[1]),
    (value) => within(value, { min, max }),
  );
}

/** One of `values`, typed as its index. */
export function numbered<T>(values: readonly T[]): Kind<T> {
  const index = whole({ min: 0, max: values.length - 1 });
  return {
    parse: (text) => values[index.parse(text)]!,
    check: (value, name) => oneOf(value as string, name, values as readonly string[]),
    show: (value) => values.indexOf(value),
  };
}

/** 0 and 1, as in other programs' options. */
export const zeroOrOne: Kind<boolean> = { ...numbered([false, true]), check: aBoolean };

/** For programs only. */
export function ofPrograms<T>(check: Check): Kind<T> {
  return {
    parse(): never {
      throw new WrongValue('Only programs can set it.');
    },
    check,
  };
}

/** A value of `kind`, typed in units of the kind `typed`. */
export function inUnits(
  kind: Pick<Kind<number>, 'check'>,
  unit: number,
  typed: Kind<number>,
): Kind<number> {
  return {
    parse: (text) => typed.parse(text) * unit,
    check: (value, name) => kind.check(value, name),
    show: (value) => value / unit,
  };
}

/** A deadline for programs: above 0, with Infinity for none. */
export const milliseconds: { readonly check: Check } = {
  check: (value, name) => aTime(value, name, Infinity),
};

export const flag: Kind<boolean> = { parse: () => true, check: aBoolean };

/** Any text, with suggestions for a shell. */
export function text(choices?: readonly string[]): Kind<string> {
  return { parse: String, check: nonEmpty, ...(choices === undefined ? {} : { choices }) };
}

/** An option that may be repeated: each adds one value. */
export function repeated<T>(kind: Typed<T>): Typed<readonly T[]> {
  return {
    parse: (text) => [kind.parse(text)],
    join: (before, next) => [...before, ...next],
  };
}

/** One of `names`; typed with any separators, or as one of the `aliases`. */
export function choice<T extends string>(
  names: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
): Kind<T> {
  return {
    parse(text) {
      const found =
        names.find((name) => name === text) ??
        (Object.hasOwn(aliases, text) ? aliases[text] : undefined) ??
        names.find((name) => plainLetters(name) === plainLetters(text));
      if (found !== undefined) return found;
      const meant = didYouMean(text, [...names, ...Object.keys(aliases)]);
      throw new WrongValue(`Expected one of: ${names.join(', ')}.${meant}`);
    },
    check: (value, name) => oneOf(value, name, names),
    choices: names,
  };
}

export function items(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.some((part) => part === '')) {
    throw new WrongValue('Expected a comma-separated list without empty items.');
  }
  return parts;
}

/** A comma list without gaps; typed items must be unique unless `repeats` is set. */
export function list<T>(kind: Kind<T>, { repeats = false } = {}): Kind<readonly T[]> {
  return {
    parse(text) {
      const parts = items(text);
      const repeated = parts.find((part, i) => parts.indexOf(part) !== i);
      if (repeated !== undefined && !repeats) {
        throw new WrongValue(`Expected each item once, but ${repeated} is repeated.`);
      }
      return parts.map((part) => kind.parse(part));
    },
    check(value, name) {
      const given = arrayOf(value, name);
      // By index: forEach skips the holes of a sparse array.
      for (let i = 0; i < given.length; i += 1) kind.check(given[i], `${name}[${i}]`);
    },
  };
}

const unitBytes: Readonly<Record<string, number>> = {
  '': 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

const bytesOf = (least: number, expected: string): Kind<number> =>
  numbers(
    `${expected} such as 8, 64K, 128M or 1G`,
    (text) => {
      const [, number, suffix = ''] = /^(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?$/i.exec(text) ?? [];
      return Number(number) * (unitBytes[suffix.toUpperCase()] ?? NaN);
    },
    (value) => Number.isSafeInteger(value) && value >= least,
  );

/** Bytes with an optional binary suffix, as in nccl-tests: 8, 64K, 128M, 1G (1K = 1024). */
export const byteCount = bytesOf(0, 'a whole number of bytes');

/** The size of a measurement, at least one byte (for one element). */
export const sizeInBytes = bytesOf(1, 'a size of at least 1 byte (one element is the smallest)');

const gpu = whole({ min: 0, max: 1023 });

/** GPUs by ordinal, without repeats: `0,1,2`. */
export const gpuList = list(gpu);

/** GPUs by ordinal, repeated for several devices: `0,0,0,0`. */
export const ordinals = list(gpu, { repeats: true });
