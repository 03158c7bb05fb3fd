// What the runs of all benchmarks have in common: what is asked, what is told while they run, and a report's head.
import { environmentOf } from './machine/environment.js';
import {
  schemaVersion,
  type CaseResult,
  type GpuEnvironment,
  type ReportHead,
  type Scalar,
} from '../results/result.js';
import { aFunction, anObject } from '../checks.js';
import { filled, shown, type Filled, type OptionsOf, type Table } from '../options/table.js';
import { ofPrograms } from '../options/kinds.js';
import { version } from '../version.js';

/** Options of every benchmark. */
export interface RunOptions {
  /**
   * What the report says was asked for, where that is not these options: a command has arguments and names of its own.
   * Default: no arguments, and these options.
   */
  readonly asked?: Asked | undefined;
}

/** What a command was asked for, in its own words. */
export interface Asked {
  /** The words after the command's name; none of a run from a program. */
  readonly commandLine: readonly string[];
  /** Every option by name, defaults included. */
  readonly options: Readonly<Record<string, Scalar>>;
}

const runTable = { asked: { kind: ofPrograms<Asked>(anObject) } };

/** One rank of a run. */
export interface RankInfo {
  /** Its number, from 0. */
  readonly rank: number;
  /** Of its process. */
  readonly pid: number;
  /** The name of its host. */
  readonly host: string;
  /** The GPU that the rank is; absent where its memory is the host's. */
  readonly device?: string;
  /** The color of its group, where the ranks are split. */
  readonly group?: number;
}

/**
 * What a run tells while it runs. All are optional, and none is called inside a timed region. Where several processes
 * measure together, those of rank 0 alone are called.
 */
export interface RunEvents {
  /** Once, before the first figure: everything that the report will say but its cases. */
  onStart?(head: ReportHead, ranks: readonly RankInfo[]): void;
  /** With 0 before the first step, then after each: so many of all are done. */
  onProgress?(done: number, total: number): void;
  /**
   * Where a run can tell: before the first case and after each, about how many seconds are left, and how many of all cases
   * are done.
   */
  onEstimate?(secondsLeft: number, done: number, total: number): void;
  /** With the cases that one step measured together, such as a size in place and out of place. */
  onCases?(cases: readonly CaseResult[]): void;
}

/** The options of a run with their defaults, and what its report records. */
export type Given<T extends Table> = Filled<T> & { readonly asked: Asked };

/**
 * The options of a run by its table: what was given, else the defaults. A report records them as programs give
 * them; what is neither a plain value nor a list, as it is typed.
 *
 * @throws TypeError or RangeError with a code, for what is no object, an option that is not known and a wrong value
 */
export function givenOptions<T extends Table>(
  table: T,
  options: OptionsOf<T> & RunOptions,
): Given<T> {
  const all = filled({ ...table, ...runTable }, options, 'run') as Filled<T> & RunOptions;
  const plain = Object.entries(all).map(([name, value]) => {
    const row = table[name];
    const isPlain = value === null || typeof value !== 'object' || Array.isArray(value);
    return [name, row === undefined || isPlain ? value : shown(row.kind, value)];
  });
  const recorded = flatOptions(Object.fromEntries(plain) as object);
  return { ...all, asked: all.asked ?? { commandLine: [], options: recorded } };
}

/** Options as a report has them: names with plain values, lists as text; what is neither is left out. */
export function flatOptions(options: object): Record<string, Scalar> {
  const flat: Record<string, Scalar> = {};
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    if (Array.isArray(value)) flat[name] = value.join(',');
    else if (isScalar(value)) flat[name] = value;
  }
  return flat;
}

function isScalar(value: unknown): value is Scalar {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

/**
 * The head of a report, as of now.
 *
 * @param tool the name of the command that measures the same
 * @param extra options that are known to the run alone, in front of those that were asked for
 */
export function headOf(
  tool: string,
  { asked }: { readonly asked: Asked },
  extra: Readonly<Record<string, Scalar>> = {},
  gpus?: GpuEnvironment,
): ReportHead {
  return {
    schemaVersion,
    run: {
      tool,
      packageVersion: version,
      commandLine: asked.commandLine,
      options: { ...extra, ...asked.options },
      startedAt: new Date().toISOString(),
    },
    environment: environmentOf(),
    ...(gpus === undefined ? {} : { gpus }),
  };
}

/** @throws TypeError for what is no object of functions that are told. */
export function checkEvents(events: RunEvents): void {
  anObject(events, 'events');
  for (const [name, told] of Object.entries(events) as [string, unknown][]) {
    if (told !== undefined) aFunction(told, `events.${name}`);
  }
}

/** Counts steps, and tells of each. */
export class Steps {
  private done = 0;

  constructor(
    private readonly events: RunEvents,
    private readonly total: number,
  ) {
    events.onProgress?.(0, total);
  }

  /** One more is done. */
  advance(): void {
    this.done += 1;
    this.events.onProgress?.(this.done, this.total);
  }
}
