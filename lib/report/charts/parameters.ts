// What the parameters of cases are called, and how their values are written for people.
import type { Scalar } from '../../results/result.js';
import { sizeText } from '../../results/units.js';

// Maps: a report from elsewhere may name a parameter as what every object has.
const titles: ReadonlyMap<string, string> = new Map([
  ['bytes', 'size'],
  ['bucketBytes', 'bucket'],
  ['kvStore', 'store'],
]);

/** `batch size` of batchSize. */
export function parameterTitle(name: string): string {
  return (
    titles.get(name) ?? name.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  );
}

/** A value as a table shows it below its title; nothing for what is not given. */
export function parameterText(name: string, value: Scalar | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value;
  return name.toLowerCase().endsWith('bytes') ? sizeText(value) : String(value);
}

/** What is counted, and one of it: the number comes first. */
const counted: ReadonlyMap<string, string> = new Map([
  ['devices', 'device'],
  ['gpus', 'GPU'],
  ['processes', 'process'],
  ['ranks', 'rank'],
  ['servers', 'server'],
  ['workers', 'worker'],
]);

/**
 * A value that says by itself what it is of: `2 workers`, `bucket 3 MiB`, `not shared`; strings and sizes alone, nothing
 * for a single figure beside totals.
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
