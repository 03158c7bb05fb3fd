// A grid of training runs from a YAML file, in TianShu's or ElasticDL's format, whose tables differ.
import { parse } from 'yaml';

import { printableTree } from '../../printable.js';

/** Machines, and devices per machine. */
export interface GridCell {
  readonly machines: number;
  readonly devices: number;
}

/** The format of the table. */
export type GridStyle = 'tianshu' | 'elasticdl';

export interface GridPlan {
  /** Networks; empty: the command line's. */
  readonly models: readonly string[];
  readonly cells: readonly GridCell[];
  readonly batchSizes: readonly number[];
  /** Runs per cell; TianShu uses their median. */
  readonly repeats: number;
  /** The measuring options of each run, for `gradlink train`. */
  readonly measuring: readonly string[];
  /** TianShu's required efficiency. */
  readonly target: number;
  /** Host names; without any, cells with several machines cannot run. */
  readonly hosts: readonly string[];
  readonly launcher: string;
  /** Further arguments of `gradlink launch`, not validated here. */
  readonly launch: readonly string[];
  /** For stores with servers. */
  readonly servers: number;
  /** Per run. */
  readonly timeoutSeconds?: number | undefined;
  /** Further options of `gradlink train` by long name. */
  readonly options: Readonly<Record<string, string>>;
}

/** Keys of TianShu's protocol only. */
const tianshuKeys = ['warmup', 'steps', 'target'];
const ownKeys = [
  'model',
  'grid',
  'workers',
  'batch-size',
  'repeats',
  ...tianshuKeys,
  'hosts',
  'launcher',
  'launch',
  'servers',
  'timeout',
];

/**
 * Reads an untrusted plan: it is data without files or programs. Other keys are options of `gradlink train`. Control
 * characters become escapes.
 *
 * @param known the long names of allowed options, without dashes
 * @param style the format: ElasticDL times tasks, by the options of the same names
 * @throws Error with the wrong entry and the expected form.
 */
export function parsePlan(
  text: string,
  known: readonly string[],
  style: GridStyle = 'tianshu',
): GridPlan {
  const tooDeep = 'expected entries of at most 64 levels, got more, or one that contains itself';
  const root = printableTree(parse(text), () => new Error(tooDeep));
  if (typeof root !== 'object' || root === null || Array.isArray(root)) {
    throw new Error('expected entries such as "model: resnet50" and "grid: [[1, 1], [1, 2]]"');
  }
  const entries = new Map(
    Object.entries(root).map(([key, value]) => [key.replaceAll('_', '-'), value as unknown]),
  );
  const integer = (name: string, fallback: number, least = 1): number => {
    const value = entries.get(name) ?? fallback;
    return wholeNumber(value, name, least);
  };
  const other = style === 'tianshu' ? undefined : tianshuKeys.find((key) => entries.has(key));
  if (other !== undefined) {
    const expected =
      'num-warmup-batches, num-batches-per-iter and num-iters for how tasks are timed';
    throw new Error(`expected ${expected}, got ${other}, which --style tianshu has`);
  }
  const options: Record<string, string> = {};
  for (const [key, value] of entries) {
    if (ownKeys.includes(key)) continue;
    if (!known.includes(key)) {
      const all = [...ownKeys, ...known].join(', ');
      throw new Error(
        `expected ${all}, got the entry ${key}. Options that name files or programs belong on the command line`,
      );
    }
    if (typeof value !== 'string' && typeof value !== 'number' && value !== true) {
      throw new Error(`expected text, a number or true for ${key}, got ${JSON.stringify(value)}`);
    }
    options[key] = String(value);
  }
  const target = entries.get('target') ?? 0.8;
  if (typeof target !== 'number' || !(target > 0)) {
    throw new Error(`expected a number above 0 for target, got ${JSON.stringify(target)}`);
  }
  const timeout = entries.get('timeout');
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0)) {
    throw new Error(`expected seconds above 0 for timeout, got ${JSON.stringify(timeout)}`);
  }
  const hosts = texts(entries.get('hosts'), 'a list of names for hosts');
  const launch = texts(entries.get('launch'), 'a list of arguments of gradlink launch for launch');
  const launcher = entries.get('launcher') ?? (hosts.length > 0 ? 'ssh' : 'local');
  if (typeof launcher !== 'string' || (launcher === 'local') !== (hosts.length === 0)) {
    const expected = hosts.length > 0 ? 'mpi, ssh or slurm for launcher' : 'hosts for the launcher';
    throw new Error(`expected ${expected}, got ${JSON.stringify(launcher)}`);
  }
  const batch = entries.get('batch-size') ?? 32;
  const model = entries.get('model') ?? [];
  const models =
    typeof model === 'string' ? [model] : texts(model, 'a name or a list of names for model');
  return {
    models,
    cells: cellsOf(entries.get('grid'), entries.get('workers')),
    batchSizes: (Array.isArray(batch) ? batch : [batch]).map((size) =>
      wholeNumber(size, 'batch-size', 1),
    ),
    repeats: integer('repeats', style === 'tianshu' ? 5 : 1),
    measuring:
      style === 'tianshu'
        ? [
            ...['--steps', String(integer('steps', 100))],
            ...['--num-warmup-batches', String(integer('warmup', 20, 0))],
          ]
        : [],
    target,
    hosts,
    launcher,
    launch,
    servers: integer('servers', 0, 0),
    timeoutSeconds: timeout,
    options,
  };
}

function texts(value: unknown, expected: string): string[] {
  const list = value ?? [];
  if (!Array.isArray(list) || !list.every((one): one is string => typeof one === 'string')) {
    throw new Error(`expected ${expected}, got ${JSON.stringify(list)}`);
  }
  return list;
}

function wholeNumber(value: unknown, name: string, least: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least) {
    const got = JSON.stringify(value);
    throw new Error(`expected a whole number of at least ${least} for ${name}, got ${got}`);
  }
  return value;
}

function cellsOf(grid: unknown, workers: unknown): GridCell[] {
  if (workers !== undefined) {
    if (grid !== undefined) throw new Error('grid and workers cannot be combined');
    const counts = Array.isArray(workers) ? workers : [workers];
    return counts.map((count) => ({ machines: 1, devices: wholeNumber(count, 'workers', 1) }));
  }
  if (!Array.isArray(grid) || grid.length === 0) {
    throw new Error(
      'expected a list of [machines, devices on each] for grid, or a list of numbers for workers',
    );
  }
  return grid.map((cell: unknown) => {
    if (!Array.isArray(cell) || cell.length !== 2) {
      const got = JSON.stringify(cell);
      throw new Error(`expected [machines, devices on each] in grid, got ${got}`);
    }
    return { machines: wholeNumber(cell[0], 'grid', 1), devices: wholeNumber(cell[1], 'grid', 1) };
  });
}
