// Parsers of option values for commander: each takes the text and gives the value or says what was expected.
import { InvalidArgumentError } from 'commander';

import { parseDevices, type StoreDevices } from '../kvstore/devices.js';
import { didYouMean, plainLetters } from '../nearest.js';

export interface Range {
  readonly min?: number;
  readonly max?: number;
}

function describeRange(range: Range): string {
  if (range.min !== undefined && range.max !== undefined) {
    return ` from ${String(range.min)} to ${String(range.max)}`;
  }
  if (range.min !== undefined) return ` of at least ${String(range.min)}`;
  return range.max === undefined ? '' : ` of at most ${String(range.max)}`;
}

function inRange(value: number, range: Range): boolean {
  return value >= (range.min ?? -Infinity) && value <= (range.max ?? Infinity);
}

/** A whole number, written with digits only (so that `1e3`, `0x10` and the empty string are errors). */
export function integer(range: Range = {}): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(value) || !inRange(value, range)) {
      throw new InvalidArgumentError(`Expected a whole number${describeRange(range)}.`);
    }
    return value;
  };
}

/** A finite decimal number. `above`: exclusive lower bound. */
export function decimal(above: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === '' ? NaN : Number(text);
    if (!Number.isFinite(value) || value <= above) {
      throw new InvalidArgumentError(`Expected a number greater than ${String(above)}.`);
    }
    return value;
  };
}

/** A decimal number of percent, with or without the sign. */
export function percent(min: number, max: number): (text: string) => number {
  return (text) => {
    const match = /^(\d+(?:\.\d+)?) ?%?$/.exec(text);
    const value = match === null ? NaN : Number(match[1]);
    if (!(value >= min && value <= max)) {
      throw new InvalidArgumentError(`Expected percent${describeRange({ min, max })}.`);
    }
    return value;
  };
}

/** A parser of anything, with words that a shell may offer. */
export function offering<T>(
  choices: readonly string[],
  parse: (text: string) => T,
): ((text: string) => T) & { readonly choices: readonly string[] } {
  return Object.assign((text: string) => parse(text), { choices });
}

/** One of `names`, however its words are joined; `aliases` maps further spellings to one of them. */
export function choice<T extends string>(
  names: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
): ((text: string) => T) & { readonly choices: readonly T[] } {
  const parse = (text: string): T => {
    const found =
      names.find((name) => name === text) ??
      (Object.hasOwn(aliases, text) ? aliases[text] : undefined) ??
      names.find((name) => plainLetters(name) === plainLetters(text));
    if (found === undefined) {
      const meant = didYouMean(text, [...names, ...Object.keys(aliases)]);
      throw new InvalidArgumentError(`Expected one of: ${names.join(', ')}.${meant}`);
    }
    return found;
  };
  // For shells that complete.
  return Object.assign(parse, { choices: names });
}

/** The items of a comma list without gaps. */
function items(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.some((part) => part === '')) {
    throw new InvalidArgumentError('Expected a comma-separated list without empty items.');
  }
  return parts;
}

/** A comma list without gaps or repeats, each item through `item`. */
export function list<T>(item: (text: string) => T): (text: string) => T[] {
  return (text) => {
    const parts = items(text);
    const repeated = parts.find((part, i) => parts.indexOf(part) !== i);
    if (repeated !== undefined) {
      throw new InvalidArgumentError(`Expected each item once, but ${repeated} is repeated.`);
    }
    return parts.map(item);
  };
}

const unitBytes: Readonly<Record<string, number>> = {
  '': 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/** Bytes with an optional binary suffix, as nccl-tests reads them: 8, 64K, 128M, 1G (1K = 1024). */
export function byteCount(text: string): number {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?$/i.exec(text);
  const value =
    match === null ? NaN : Number(match[1]) * (unitBytes[(match[2] ?? '').toUpperCase()] ?? NaN);
  if (!Number.isSafeInteger(value)) {
    throw new InvalidArgumentError('Expected a whole number of bytes such as 8, 64K, 128M or 1G.');
  }
  return value;
}

/** Channels, height and width: `3,224,224`. */
export function imageShape(text: string): readonly [number, number, number] {
  const parts = text.split(',').map((part) => part.trim());
  const [channels, height, width] = parts.map(Number);
  if (
    parts.length !== 3 ||
    !parts.every((part) => /^[1-9]\d{0,5}$/.test(part)) ||
    channels === undefined ||
    height === undefined ||
    width === undefined
  ) {
    throw new InvalidArgumentError(
      'Expected CHANNELS,HEIGHT,WIDTH in whole numbers of at least 1, such as 3,224,224.',
    );
  }
  return [channels, height, width];
}

/** Devices by name: `cpu:0,cpu:1` or `gpu:0,gpu:1`; `cpu` alone means `cpu:0`. A GPU may be repeated. */
export function deviceList(text: string): StoreDevices {
  try {
    return parseDevices(items(text).map((name) => (name.includes(':') ? name : `${name}:0`)));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new InvalidArgumentError(`E${error.message.slice(1)}.`);
  }
}

const gpuOrdinal = integer({ min: 0, max: 1023 });

/** GPUs by ordinal, each once: `0,1,2`. */
export const gpuList = list(gpuOrdinal);

/** GPUs by ordinal, each as many times as it is to be a device: `0,0,0,0`. */
export function ordinals(text: string): number[] {
  return items(text).map(gpuOrdinal);
}

/** What an option that may be repeated was given so far. */
export function collect(text: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, text];
}

/** Options without those that are the command line's own. */
export function without<T extends object, K extends keyof T>(
  options: T,
  names: readonly K[],
): Omit<T, K> {
  const others = { ...options };
  for (const name of names) Reflect.deleteProperty(others, name);
  return others;
}
