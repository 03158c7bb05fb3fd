// Parses tables of the OSU micro-benchmarks: `# Size Avg Latency(us) ...`, then a line for each size.
import { numberOf } from './tokens.js';
import { unitNamed, type Unit } from './units.js';

export interface OsuColumn {
  /** `avg latency`, `bandwidth`, `rate`. */
  readonly name: string;
  /** Undefined if the heading has none, as for `Iterations`. */
  readonly unit: Unit | undefined;
}

export interface OsuHeading {
  /** A barrier has no size. */
  readonly sized: boolean;
  readonly columns: readonly OsuColumn[];
}

export interface OsuRow {
  readonly bytes: number | null;
  /** By column; undefined if not a number (`Pass`). */
  readonly values: readonly (number | undefined)[];
}

/** `Avg Latency(us)`, `Bandwidth (MB/s)`, `Messages/s`, `Iterations`. */
function columnOf(title: string): OsuColumn {
  const [, words, inBrackets] = /^([^()]*)\(([^()]*)\)$/.exec(title) ?? [];
  const alone = words === undefined ? unitNamed(title) : undefined;
  if (alone !== undefined) {
    return { name: alone.dimension === 'bytes/s' ? 'bandwidth' : 'rate', unit: alone };
  }
  const name = (words ?? title).trim().toLowerCase();
  return { name, unit: inBrackets === undefined ? undefined : unitNamed(inBrackets.trim()) };
}

/** The columns of a heading; undefined for other lines. Titles are separated by several spaces. */
export function osuHeading(line: string): OsuHeading | undefined {
  const text = line.trim();
  if (!text.startsWith('#')) return undefined;
  const [first = '', ...others] = text
    .slice(1)
    .trim()
    .split(/\t+ *| {2,}\t*/);
  const sized = /^Size(?: ?\(B\))?$/.test(first);
  const columns = (sized ? others : [first, ...others]).map(columnOf);
  // Other comments have no units; without sizes the first title has one.
  const known = sized
    ? columns.some(({ unit }) => unit !== undefined)
    : columns[0]?.unit?.dimension === 'time' && columns[0].name.includes('latency');
  return known ? { sized, columns } : undefined;
}

/** A row below a heading; undefined for other lines. */
export function osuRow(cells: readonly string[], heading: OsuHeading): OsuRow | undefined {
  const expected = heading.columns.length + (heading.sized ? 1 : 0);
  if (cells.length !== expected) return undefined;
  const [size, ...values] = heading.sized ? cells : [undefined, ...cells];
  if (size !== undefined && !/^\d+$/.test(size)) return undefined;
  if (numberOf(values[0] ?? '') === undefined) return undefined;
  return {
    bytes: size === undefined ? null : Number(size),
    values: values.map((one) => numberOf(one ?? '')),
  };
}
