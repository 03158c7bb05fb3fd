// The kinds and tables of lib/options as options of commander.
import { InvalidArgumentError, Option, type Command } from 'commander';

import { flag, WrongValue, type Typed } from '../options/kinds.js';
import { shown, type OptionsOf, type TypedRow, type TypedTable } from '../options/table.js';

/** What commander calls with the text of a value; the choices are for shells that complete. */
export type Parser<T> = ((text: string) => T) & { readonly choices?: readonly string[] };

/** What is not of the kind becomes commander's error, which names the option. */
export function read<T>(kind: Pick<Typed<T>, 'parse' | 'choices'>): Parser<T> {
  const parse = (text: string): T => {
    try {
      return kind.parse(text);
    } catch (error) {
      if (error instanceof WrongValue) throw new InvalidArgumentError(error.message);
      throw error;
    }
  };
  return kind.choices === undefined ? parse : Object.assign(parse, { choices: kind.choices });
}

/** Commander takes null for a value that is missing. */
const none = Symbol('none');

interface TypedOption {
  /** What programs call it, and what commander does. */
  readonly name: string;
  readonly attribute: string;
  readonly option: Option;
  readonly row: TypedRow<unknown>;
}

/** The options of a table that a command line can have. */
function typed(table: TypedTable): TypedOption[] {
  return Object.entries(table).flatMap(([name, row]) => {
    if (row.flag === undefined) return [];
    const option = new Option(row.flag, row.help);
    return [{ name, row, option, attribute: option.attributeName() }];
  });
}

/** Adds the options of a table to a command, in its order. */
export function addTable(command: Command, table: TypedTable): Command {
  for (const { option, row } of typed(table)) {
    const { kind, default: value } = row;
    if (kind !== flag) {
      const parse = read<unknown>({ ...kind, parse: (text) => kind.parse(text) ?? none });
      const joined = (text: string, before: unknown): unknown =>
        before === undefined || kind.join === undefined
          ? parse(text)
          : kind.join(before, parse(text));
      option.argParser(Object.assign(joined, { choices: kind.choices }));
      // What the help shows, where it is not the value itself.
      const text = kind.show === undefined ? undefined : String(shown(kind, value));
      if (value !== undefined && row.ownDefault === undefined) option.default(value ?? none, text);
    }
    option.makeOptionMandatory(row.required === true).hideHelp(row.hidden === true);
    command.addOption(option);
  }
  return command;
}

/** The options of a table, by the names of programs, from what commander read. */
export function givenOf<T extends TypedTable>(table: T, read: object): OptionsOf<T> {
  const values = read as Readonly<Record<string, unknown>>;
  const given = typed(table).flatMap(({ name, attribute, option, row }) => {
    const value = values[attribute];
    // Commander's own default of `--no-peer` is nothing that was given.
    if (value === undefined || (option.negate && value === true)) return [];
    // A flag turns off what is on without it; `--no-peer` says so itself.
    const off = row.kind === flag && row.default === true && !option.negate;
    return [[name, off ? false : value === none ? null : value]];
  });
  return Object.fromEntries(given) as OptionsOf<T>;
}

/** What commander read, with the values of a table as they were typed. */
export function typedOf(table: TypedTable, read: object): Readonly<Record<string, unknown>> {
  const all: Record<string, unknown> = { ...read };
  for (const { attribute, row } of typed(table)) {
    const absent = row.kind === flag ? false : undefined;
    const value = all[attribute] === none ? null : (all[attribute] ?? absent);
    all[attribute] = shown(row.kind, value);
  }
  return all;
}
