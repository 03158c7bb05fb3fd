// Names and values of case parameters as text.
import type { Scalar } from '../../results/result.js';
import { sizeText } from '../../results/units.js';

// Maps, because a foreign report may name a parameter like a member of Object.
const titles: ReadonlyMap<string, string> = new Map([
  ['bytes', 'size'],
  ['bucketBytes', 'bucket'],
  ['kvStore', 'store'],
]);

export function parameterTitle(name: string): string {
  return (
    titles.get(name) ?? name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  );
}

/** A value for a table cell; empty if absent. */
export function parameterText(name: string, value: Scalar | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value;
  return name.toLowerCase().endsWith('bytes') ? sizeText(value) : String(value);
}

/** Counted things in plural and singular: the number comes first. */
const counted: ReadonlyMap<string, string> = new Map([
  ['devices', 'device'],
  ['gpus', 'GPU'],
  ['processes', 'process'],
  ['ranks', 'rank'],
  ['servers', 'server'],
  ['workers', 'worker'],
]);

/**
 * A value that is clear without a title: `2 workers`, `bucket 3 MiB`, `not shared`; strings and sizes alone; empty for
 * a figure beside totals.
 */
export function parameterWords(name: string, value: Scalar | undefined): string {
  if (name === 'figure' && value === 'one') return '';
  const title = parameterTitle(name);
  if (value === undefined || value === null) return `no ${title}`;
  if (typeof value === 'boolean') return value ? title : `not ${title}`;
  if (typeof value === 'string') return value;
  const text = parameterText(name, value);
  if (name === 'bytes') return text;
  const one = counted.get(name);
  if (one === undefined) return `${title} ${text}`;
  return `${text} ${value === 1 ? one : name}`;
}
