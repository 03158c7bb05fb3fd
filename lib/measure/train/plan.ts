// A grid of training runs, as a YAML file has it: of TianShu or of ElasticDL, whose tables differ.
import { parse } from 'yaml';

import { printableTree } from '../../printable.js';

/** Machines, and devices on each. */
export interface GridCell {
  readonly machines: number;
  readonly devices: number;
}

/** Whose table the runs make. */
export type GridStyle = 'tianshu' | 'elasticdl';

export interface GridPlan {
  /** Networks; none: that of the command line. */
  readonly models: readonly string[];
  readonly cells: readonly GridCell[];
  readonly batchSizes: readonly number[];
  /** Runs of each cell; TianShu counts their median. */
  readonly repeats: number;
  /** How each run measures, as options of `gradlink train`. */
  readonly measuring: readonly string[];
  /** Efficiency that TianShu asks for. */
  readonly target: number;
  /** Names of machines; without any, cells of several machines cannot run. */
  readonly hosts: readonly string[];
  readonly launcher: string;
  /** Further arguments of `gradlink launch`, not checked here. */
  readonly launch: readonly string[];
  /** Of stores with servers. */
  readonly servers: number;
  /** Of one run. */
  readonly timeoutSeconds?: number | undefined;
  /** Further options of `gradlink train`, by their long names. */
  readonly options: Readonly<Record<string, string>>;
}

/** What TianShu's protocol alone has. */
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
 * Reads a plan, which may come from somebody else: it is data, and names no file and no program. What is no word of a plan
 * is an option of `gradlink train`. Control characters in its texts become escapes.
 *
 * @param known the long names of the options that a plan may have, without the dashes
 * @param style whose table it makes: ElasticDL times tasks, by the options of the same names
 * @throws Error that says which entry is wrong and what it should be.
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
