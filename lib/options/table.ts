// A tool's options in one table, which defines types, command-line options, defaults and checks.
import type { Kind } from './kinds.js';
import { optionsObject } from '../checks.js';

/** An option by its name in programs. */
export interface Row<T> {
  readonly kind: Kind<T>;
  readonly default?: T;
  /** Whether a command computes its own default. */
  readonly ownDefault?: true;
  /** In commander's syntax: `-b, --buffer-size <MiB>`. Absent: for programs only. */
  readonly flag?: string;
  readonly help?: string;
}

export type Table = Readonly<Record<string, Row<unknown>>>;

type ValueOf<R> = R extends { readonly kind: Kind<infer V> } ? V : never;

/** The type for programs. */
export type OptionsOf<T extends Table> = {
  readonly [K in keyof T]?: ValueOf<T[K]> | undefined;
};

type Defaulted<T extends Table> = {
  [K in keyof T]: T[K] extends { readonly default: unknown } ? K : never;
}[keyof T];

/** The same with defaults filled in. */
export type Filled<T extends Table> = OptionsOf<T> & {
  readonly [K in Defaulted<T>]: ValueOf<T[K]>;
};

/** Returns the rows; the compiler checks that each default fits its kind. */
export function optionTable<const T extends Table>(
  rows: T & { readonly [K in keyof T]: Row<ValueOf<T[K]>> },
): T {
  return rows;
}

/**
 * Validates options and fills in defaults; undefined counts as absent.
 *
 * @throws TypeError or RangeError with a code if it is not an object, and for unknown options and invalid values
 */
export function filled<T extends Table>(table: T, given: OptionsOf<T>, owner: string): Filled<T> {
  const known: ReadonlySet<string> = new Set(Object.keys(table));
  const values: Readonly<Record<string, unknown>> = optionsObject(given, known, owner);
  const all: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(table)) {
    const value = values[name];
    if (value !== undefined) row.kind.check(value, name);
    if (value !== undefined || 'default' in row) all[name] = value ?? row.default;
  }
  return all as Filled<T>;
}

/** A value in its typed form, as recorded. */
export function shown<T>(kind: Kind<T>, value: T): unknown {
  return kind.show === undefined || value === undefined ? value : kind.show(value);
}
