// Reads the YAML file of expected figures; units are part of the names.
import { parse } from 'yaml';

import { arrayOf, notOneOf } from '../checks.js';
import { argumentError } from '../errors.js';
import { sizeInBytes } from '../options/kinds.js';
import { printable, printableTree } from '../printable.js';
import { inputError, readInput } from '../results/input-file.js';
import type { CaseResult } from '../results/result.js';
import { mebibyte } from '../results/units.js';
import type { ExpectedFigure as Figure } from './expect.js';
import { copies } from './gpus.js';

const mostBytes = 2 ** 20;
/** Figures of two days differ by less than this. */
const usualTolerance = 0.2;

/** Above the maximum, the value was probably meant in another unit. */
const units = {
  GBps: { quantity: 'bandwidth', factor: 1e9, most: 1e5, what: 'GB/s' },
  Us: { quantity: 'latency', factor: 1e-6, most: 1e7, what: 'microseconds' },
  count: { quantity: 'count', factor: 1, most: 1e5, what: 'cores or GPUs' },
} as const;

type Place = Pick<Figure, 'path' | 'source' | 'tolerances'>;
/** Reads an entry of a file. */
type Reader = (value: unknown, place: Place) => Figure[];

const figure =
  (unit: keyof typeof units, isOf: Figure['isOf'], count?: Figure['count']): Reader =>
  (value, { path, source, tolerances }) => {
    const { quantity, factor, most, what } = units[unit];
    if (!(typeof value === 'number' && value > 0 && value <= most)) {
      const expected = `a number of ${what} above 0 and up to ${String(most)}`;
      throw argumentError('ERR_INVALID_ARG_VALUE', path, expected, value);
    }
    const counted = count === undefined ? { tolerances } : { count, tolerances: [0, 0] as const };
    return [{ path, source, quantity, value: value * factor, isOf, ...counted }];
  };

const mapOf =
  (entries: Readonly<Record<string, Reader>>): Reader =>
  (value, place) => {
    const keys = Object.keys(entries);
    const where = place.path || 'the file';
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw argumentError('ERR_INVALID_ARG_TYPE', where, `some of ${keys.join(', ')}`, value);
    }
    const figures = Object.entries(value).flatMap(([key, entry]) => {
      const path = place.path === '' ? key : `${place.path}.${key}`;
      if (!keys.includes(key)) throw notOneOf(key, `an entry of ${where}`, keys);
      return entries[key]!(entry, { ...place, path });
    });
    if (figures.length > 0) return figures;
    throw argumentError('ERR_INVALID_ARG_VALUE', where, 'at least one figure', { text: 'none' });
  };

const named = (name: string) => (one: CaseResult) => one.name === name;
const places = ['threads', 'processes', 'gpus', 'hosts', 'gpus of hosts'];
const nothing: Reader = () => [];

function sizeOf(value: unknown, path: string): number {
  try {
    return sizeInBytes.parse(String(value));
  } catch {
    throw argumentError('ERR_INVALID_ARG_VALUE', path, 'a size such as 16K, 16M or 256M', value);
  }
}

const sum: Reader = (value, place) => {
  const { between, bytes } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const isOf = ({ name, parameters }: CaseResult): boolean =>
    name === 'all_reduce' &&
    parameters.between === between &&
    parameters.bytes === sizeOf(bytes, place.path);
  const figures = mapOf({
    between: nothing,
    bytes: nothing,
    busGBps: figure('GBps', isOf),
    latencyUs: figure('Us', isOf),
  })(value, place);
  if (typeof between !== 'string' || !places.includes(between)) {
    throw notOneOf(between, `${place.path}.between`, places);
  }
  const size = sizeOf(bytes, `${place.path}.bytes`);
  const wide = figures.find(({ quantity }) => quantity === 'bandwidth');
  if (wide === undefined || size >= mebibyte) return figures;
  const expected = 'latencyUs instead, since below 1 MiB the cost of a call decides,';
  const got = { text: `bandwidth of ${String(bytes)}` };
  throw argumentError('ERR_INVALID_ARG_VALUE', wide.path, expected, got);
};

const file = mapOf({
  tolerance: nothing,
  cores: mapOf({ count: figure('count', named('cores'), ({ values }) => values?.['cores'] ?? 0) }),
  memory: mapOf({ copyGBps: figure('GBps', named('memory')) }),
  gpus: mapOf({
    count: figure(
      'count',
      ({ name, parameters: { gpu } }) => name === 'doctor' && gpu === undefined,
      ({ parameters: { host } }, all) =>
        all.filter(
          ({ name, parameters }) =>
            name === 'doctor' && parameters.gpu !== undefined && parameters.host === host,
        ).length,
    ),
  }),
  all_reduce: (value, place) =>
    arrayOf(value, place.path, 'a list').flatMap((one, at) =>
      sum(one, { ...place, path: `${place.path}[${String(at)}]` }),
    ),
  copiesGBps: mapOf(Object.fromEntries(copies.map((name) => [name, figure('GBps', named(name))]))),
  pairs: mapOf({
    latencyUs: figure('Us', named('latency')),
    bandwidthGBps: figure('GBps', named('bandwidth')),
    bidirectionalGBps: figure('GBps', named('bidirectional')),
  }),
});

/**
 * Reads expectations from an untrusted text.
 *
 * @param source its name in verdicts
 * @throws Error with the wrong entry, the expected form and the value
 */
export function parseExpected(text: string, source: string): Figure[] {
  const tooDeep = 'expected entries of at most 64 levels, got more, or one that contains itself';
  const given = printableTree(parse(text, { logLevel: 'error' }), () => new Error(tooDeep));
  const { tolerance = usualTolerance } = (given ?? {}) as { readonly tolerance?: unknown };
  if (!(typeof tolerance === 'number' && tolerance >= 0 && tolerance < 1)) {
    const expected = 'a share of at least 0 and below 1, such as 0.2,';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'tolerance', expected, tolerance);
  }
  // The author set the tolerances, so any excess is a fault.
  return file(given, { path: '', source, tolerances: [tolerance, tolerance] });
}

/** @throws TypeError with a code that names the file, or GradlinkError where it cannot be read */
export function readExpected(path: string): Figure[] {
  const expected = 'what a check expects';
  const text = readInput(path, expected, mostBytes);
  try {
    return parseExpected(text, printable(path));
  } catch (error) {
    // A YAML error shows the line of the file below its message.
    throw inputError(path, expected, (error as Error).message.replace(/:\n.*|\.$/s, ''));
  }
}
