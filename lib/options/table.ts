// A tool's options in one table, which defines types, command-line options, defaults and checks.
import type { Kind, Typed } from './kinds.js';
import { optionsObject } from '../checks.js';

/** One option of a command, by commander's name for it. */
export interface TypedRow<T> {
  readonly kind: Typed<T>;
  readonly default?: T;
  /** Whether a command computes its own default. */
  readonly ownDefault?: true;
  /** In commander's syntax: `-b, --buffer-size <MiB>`. Absent: for programs only. */
  readonly flag?: string;
  readonly help?: string;
  /** Whether a command cannot do without it. */
  readonly required?: true;
  /** Whether help and completion leave it out. */
  readonly hidden?: true;
}

/** One option of programs too, by the name that they give it. */
export interface Row<T> extends TypedRow<T> {
  readonly kind: Kind<T>;
}

export type TypedTable = Readonly<Record<string, TypedRow<unknown>>>;
export type Table = Readonly<Record<string, Row<unknown>>>;

type ValueOf<R> = R extends { readonly kind: Typed<infer V> } ? V : never;

/** What may be given. */
export type OptionsOf<T extends TypedTable> = {
  readonly [K in keyof T]?: ValueOf<T[K]> | undefined;
};

type Defaulted<T extends TypedTable> = {
  [K in keyof T]: T[K] extends { readonly default: unknown } | { readonly required: true }
    ? K
    : never;
}[keyof T];

/** The same with the defaults of those that have one. */
export type Filled<T extends TypedTable> = OptionsOf<T> & {
  readonly [K in Defaulted<T>]: ValueOf<T[K]>;
};

/** What commander reads: nothing is undefined that is there. */
export type ReadOf<T extends TypedTable> = {
  readonly [K in keyof T]?: ValueOf<T[K]>;
} & {
  readonly [K in Defaulted<T>]: ValueOf<T[K]>;
};

/** The rows as they are: the compiler sees to it that each default is of its kind. */
export function optionTable<const T extends TypedTable>(
  rows: T & { readonly [K in keyof T]: TypedRow<ValueOf<T[K]>> },
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

/** A value as it is typed and recorded. */
export function shown<T>(kind: Typed<T>, value: T): unknown {
  return kind.show === undefined || value === undefined ? value : kind.show(value);
}
