// The common part of all benchmarks: requests, progress events, and a report's head.
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
   * The request in the report, if it differs from these options: a command has its own arguments and names. Default: no
   * arguments, and these options.
   */
  readonly asked?: Asked | undefined;
}

/** A command's request, in its own words. */
export interface Asked {
  /** The words after the command's name; empty for a run from a program. */
  readonly commandLine: readonly string[];
  /** Every option by name, including defaults. */
  readonly options: Readonly<Record<string, Scalar>>;
}

const runTable = { asked: { kind: ofPrograms<Asked>(anObject) } };

/** One rank of a run. */
export interface RankInfo {
  /** Its number, from 0. */
  readonly rank: number;
  /** Its process. */
  readonly pid: number;
  /** The name of its host. */
  readonly host: string;
  /** Its GPU; absent in host memory. */
  readonly device?: string;
  /** The color of its group, with a split. */
  readonly group?: number;
}

/**
 * Callbacks during a run. All are optional, and none is called inside a timed region. With several processes, only rank
 * 0's are called.
 */
export interface RunEvents {
  /** Once, before the first figure, with the report's head. */
  onStart?(head: ReportHead, ranks: readonly RankInfo[]): void;
  /** Before the first step with 0, then after each step with the number of finished steps. */
  onProgress?(done: number, total: number): void;
  /**
   * If a run can estimate it: before the first case and after each, with the approximate seconds left and the share of
   * finished cases.
   */
  onEstimate?(secondsLeft: number, done: number, total: number): void;
  /** With the cases of one step, such as a size in place and out of place. */
  onCases?(cases: readonly CaseResult[]): void;
}

/** A run's options with their defaults, and the request for its report. */
export type Given<T extends Table> = Filled<T> & { readonly asked: Asked };

/**
 * Validates a run's options by its table and fills in defaults. A report records them in programs' form, or as typed
 * for values that are neither plain nor lists.
 *
 * @throws TypeError or RangeError with a code if it is not an object, and for unknown options and invalid values
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

/** Options for a report: plain values by name, lists as text; others are left out. */
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
 * @param tool the name of the corresponding command
 * @param extra options known only to the run, placed before the requested ones
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

/** @throws TypeError unless it is an object of functions */
export function checkEvents(events: RunEvents): void {
  anObject(events, 'events');
  for (const [name, told] of Object.entries(events) as [string, unknown][]) {
    if (told !== undefined) aFunction(told, `events.${name}`);
  }
}

/** Counts steps and reports each. */
export class Steps {
  private done = 0;

  constructor(
    private readonly events: RunEvents,
    private readonly total: number,
  ) {
    events.onProgress?.(0, total);
  }

  advance(): void {
    this.done += 1;
    this.events.onProgress?.(this.done, this.total);
  }
}
