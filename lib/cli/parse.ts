// Values of options as commander reads them: the kinds of lib/options, tables of them, and what commands alone have.
import { InvalidArgumentError, Option, type Command } from 'commander';

import { parseDevices, type StoreDevices } from '../kvstore/devices.js';
import { flag, items, whole, WrongValue, type Kind } from '../options/kinds.js';
import { shown, type OptionsOf, type Row, type Table } from '../options/table.js';

/** What commander calls with the text of a value; the choices are for shells that complete. */
export type Parser<T> = ((text: string) => T) & { readonly choices?: readonly string[] };

/** What is not of the kind becomes commander's error, which names the option. */
export function read<T>(kind: Pick<Kind<T>, 'parse' | 'choices'>): Parser<T> {
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

/** A parser of anything, with words that a shell may offer. */
export function offering<T>(choices: readonly string[], parse: (text: string) => T): Parser<T> {
  return read({ parse, choices });
}

/** Commander takes null for a value that is missing. */
const none = Symbol('none');

interface Typed {
  /** What programs call it, and what commander does. */
  readonly name: string;
  readonly attribute: string;
  readonly option: Option;
  readonly row: Row<unknown>;
}

/** The options of a table that a command line can have. */
function typed(table: Table): Typed[] {
  return Object.entries(table).flatMap(([name, row]) => {
    if (row.flag === undefined) return [];
    const option = new Option(row.flag, row.help);
    return [{ name, row, option, attribute: option.attributeName() }];
  });
}

/** Adds the options of a table to a command, in its order. */
export function addTable(command: Command, table: Table): Command {
  for (const { option, row } of typed(table)) {
    const { kind, default: value } = row;
    if (kind !== flag) {
      option.argParser(read({ ...kind, parse: (text) => kind.parse(text) ?? none }));
      // What the help shows, where it is not the value itself.
      const text = kind.show === undefined ? undefined : String(shown(kind, value));
      if (value !== undefined && row.ownDefault === undefined) option.default(value ?? none, text);
    }
    command.addOption(option);
  }
  return command;
}

/** The options of a table, by the names of programs, from what commander read. */
export function givenOf<T extends Table>(table: T, read: object): OptionsOf<T> {
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
export function typedOf(table: Table, read: object): Readonly<Record<string, unknown>> {
  const all: Record<string, unknown> = { ...read };
  for (const { attribute, row } of typed(table)) {
    const absent = row.kind === flag ? false : undefined;
    const value = all[attribute] === none ? null : (all[attribute] ?? absent);
    all[attribute] = shown(row.kind, value);
  }
  return all;
}

/** Channels, height and width: `3,224,224`. */
export const imageShape = read({
  parse(text): readonly [number, number, number] {
    const side = whole({ min: 1, max: 999_999 });
    try {
      const [channels, height, width, ...others] = items(text).map((part) => side.parse(part));
      if (width !== undefined && others.length === 0) return [channels!, height!, width];
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
    }
    throw new WrongValue(
      'Expected CHANNELS,HEIGHT,WIDTH in whole numbers of at least 1, such as 3,224,224.',
    );
  },
});

/** Devices by name: `cpu:0,cpu:1` or `gpu:0,gpu:1`; `cpu` alone means `cpu:0`. A GPU may be repeated. */
export const deviceList = read({
  parse(text): StoreDevices {
    try {
      return parseDevices(items(text).map((name) => (name.includes(':') ? name : `${name}:0`)));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new WrongValue(`E${error.message.slice(1)}.`);
    }
  },
});

/** What an option that may be repeated was given so far. */
export function collect(text: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, text];
}
