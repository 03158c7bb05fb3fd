// nccl-tests: the JSON of -J, and its table.
import { knownVariables } from '../environment.js';
import { ncclHeading, ncclRow, type NcclHeading } from '../../printed/nccl-tests.js';
import type { CaseResult, Report, Scalar } from '../result.js';
import {
  amountIn,
  fieldsOf,
  foreignCase,
  foreignReport,
  listIn,
  textIn,
  type Fields,
} from './record.js';

const dtypes: Readonly<Record<string, string>> = {
  float: 'float32',
  half: 'float16',
  double: 'float64',
  f8e4m3: 'float8_e4m3',
  f8e5m2: 'float8_e5m2',
  fp8_e4m3: 'float8_e4m3',
  fp8_e5m2: 'float8_e5m2',
};

/** `./build/all_reduce_perf` is all_reduce. */
function collectiveIn(text: string): string | undefined {
  return /(?:^|[\s/])([a-z_]{1,40})_perf(?:\s|$)/.exec(text)?.[1];
}

interface Figures {
  readonly microseconds: number;
  readonly algbw: number;
  readonly busbw: number;
  readonly wrong: number | null;
  /** Of each iteration, with -I. */
  readonly each?: readonly number[];
}

interface Context {
  readonly name: string;
  readonly ranks: number | undefined;
  readonly iterations: number;
  readonly warmup: number;
}

interface Line {
  readonly bytes: number;
  readonly count: number | null;
  readonly type: string | null;
  readonly redop: string | null;
  readonly root: number | null;
}

function caseOf(context: Context, line: Line, placement: string, figures: Figures): CaseResult {
  const { microseconds, algbw, busbw, wrong, each = [] } = figures;
  const { type, redop } = line;
  return foreignCase({
    name: context.name,
    parameters: {
      bytes: line.bytes,
      ...(line.count === null ? {} : { count: line.count }),
      dtype: type === null ? null : (dtypes[type] ?? type),
      op: redop,
      root: line.root,
      placement,
      ...(context.ranks === undefined ? {} : { ranks: context.ranks }),
      shared: false,
    },
    samplesSeconds: (each.length > 0 ? each : [microseconds]).map((time) => time / 1e6),
    iterationsPerSample: each.length > 0 ? 1 : context.iterations,
    warmupIterations: context.warmup,
    bytes: line.bytes,
    algorithm: algbw * 1e9,
    bus: busbw * 1e9,
    formula: 'as nccl-tests printed it',
    wrong,
  });
}

function figuresIn(value: unknown, perIteration: unknown): Figures | undefined {
  const told = fieldsOf(value);
  const microseconds = amountIn(told['time']) ?? amountIn(told['cpu_time']);
  const [algbw, busbw] = [amountIn(told['alg_bw']), amountIn(told['bus_bw'])];
  if (microseconds === undefined || algbw === undefined || busbw === undefined) return undefined;
  const times = listIn(fieldsOf(perIteration)['times_us']).map(amountIn);
  const each = times.filter((time) => time !== undefined);
  return { microseconds, algbw, busbw, wrong: wholeOf(amountIn(told['nwrong'])), each };
}

const wholeOf = (wrong: number | undefined): number | null =>
  wrong === undefined ? null : Math.ceil(wrong);

function scalarsOf(fields: Fields): Record<string, Scalar> {
  const known = Object.entries(fields).filter(
    (entry): entry is [string, Scalar] => entry[1] === null || typeof entry[1] !== 'object',
  );
  return Object.fromEntries(known);
}

/** Local time without a zone, taken as it is. */
function timeOf(text: unknown): string | undefined {
  const [, day, clock] = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$/.exec(String(text)) ?? [];
  return day === undefined || clock === undefined ? undefined : `${day}T${clock}Z`;
}

/** The report of -J's file; undefined for other JSON. */
export function ncclJson(value: Fields): Report | undefined {
  if (!Array.isArray(value['results']) || typeof value['config'] !== 'object') return undefined;
  const config = fieldsOf(value['config']);
  const args = listIn(value['args']).map(String);
  const devices = listIn(config['devices'] ?? value['devices']).map(
    (device) => amountIn(fieldsOf(device)['rank']) ?? 0,
  );
  // Of several GPUs of one process only the first is listed.
  const perProcess = (amountIn(config['nthreads']) ?? 1) * (amountIn(config['ngpus']) ?? 1);
  const ranks = devices.length > 1 ? Math.max(...devices) + 1 : perProcess;
  const times = amountIn(config['aggregated_iterations']) ?? 1;
  const cases = value['results'].flatMap((result: unknown) => {
    const told = fieldsOf(result);
    const bytes = amountIn(told['size']);
    if (bytes === undefined) return [];
    const root = amountIn(told['root']);
    const redop = textIn(told['redop']);
    const line = {
      bytes,
      count: amountIn(told['count']) ?? null,
      type: textIn(told['type']) ?? null,
      redop: redop === 'none' || redop === undefined ? null : redop,
      root: root ?? null,
    };
    const context = {
      name: collectiveIn(args[0] ?? '') ?? textIn(told['experiment_name']) ?? 'collective',
      ranks: devices.length * perProcess > devices.length && devices.length > 1 ? undefined : ranks,
      iterations:
        (amountIn(told['actual_iterations']) ?? amountIn(config['iterations']) ?? 1) * times,
      warmup: amountIn(config['warmup_iters']) ?? 0,
    };
    const placements = [
      ['out-of-place', 'out_of_place'],
      ['in-place', 'in_place'],
    ] as const;
    return placements.flatMap(([placement, key]) => {
      const figures = figuresIn(told[key], told[`${key}_per_iter`]);
      return figures === undefined ? [] : [caseOf(context, line, placement, figures)];
    });
  });
  const variables = listIn(value['env']).map((one) => {
    const text = String(one);
    const at = text.indexOf('=');
    return [text.slice(0, at), text.slice(at + 1)];
  });
  const run = {
    tool: 'nccl-tests',
    commandLine: args,
    options: scalarsOf(config),
    startedAt: timeOf(value['start_time']),
    variables: knownVariables(Object.fromEntries(variables) as Record<string, string>),
  } as const;
  return foreignReport(run, cases);
}

/** Reads its table line by line. */
export class NcclText {
  readonly cases: CaseResult[] = [];
  version: string | undefined;
  private heading: NcclHeading | undefined;
  private name = 'collective';
  private readonly ranks = new Set<number>();
  private iterations = 1;
  private warmup = 0;

  read(line: string, cells: readonly string[]): void {
    const row = ncclRow(line, this.heading);
    if (row === undefined) {
      this.told(line, cells);
      return;
    }
    const context = {
      name: this.name,
      ranks: this.ranks.size > 0 ? Math.max(...this.ranks) + 1 : undefined,
      iterations: this.iterations,
      warmup: this.warmup,
    };
    for (const [placement, figures] of [
      ['out-of-place', row.outOfPlace],
      ['in-place', row.inPlace],
    ] as const) {
      if (figures === null) continue;
      const algbw = figures.algbw ?? row.bytes / figures.microseconds / 1e3;
      this.cases.push(caseOf(context, row, placement, { ...figures, algbw }));
    }
  }

  private told(line: string, cells: readonly string[]): void {
    this.heading = ncclHeading(cells) ?? this.heading;
    this.name = collectiveIn(line) ?? this.name;
    const after = (words: RegExp): number | undefined => amountIn(words.exec(line)?.[1]);
    const rank = after(/^#\s{1,8}Rank\s{1,8}(\d{1,9}) /);
    if (rank !== undefined) {
      // The table of another run follows.
      if (rank === 0 && this.ranks.has(0)) this.ranks.clear();
      this.ranks.add(rank);
    }
    this.version = /^# nccl-tests version (\S{1,40})/.exec(line)?.[1] ?? this.version;
    const iterations = after(/(?<!warmup |agg )\biters: (\d{1,9})/);
    if (iterations === undefined) return;
    this.iterations = Math.max(1, iterations * (after(/agg iters: (\d{1,9})/) ?? 1));
    this.warmup = after(/warmup iters: (\d{1,9})/) ?? 0;
  }
}
