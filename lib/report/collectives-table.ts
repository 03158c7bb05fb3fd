import { median } from 'simple-statistics';

import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type Report,
  type ReportHead,
  type Scalar,
} from '../results/result.js';
import { groupsOf } from '../measure/collectives/split.js';
import type { RankInfo } from '../measure/common-run.js';
import { hostLines } from './host-lines.js';
import { mergedRepeats, rangeText, spreadOf, type Measured } from './repeats.js';
import { field, headLines, nothingRan, summaryLines } from './summary.js';
import { FixedTable, type FixedColumn } from './table.js';
import type { Tool } from './tool.js';
import { repeatsOf } from '../results/repeats.js';
import { bandwidthText, percentText } from '../results/units.js';
import { groupBy } from '../results/grouping.js';

function left(title: string, unit: string, width: number, weight?: number): FixedColumn {
  return { title, unit, width, align: 'right', ...(weight === undefined ? {} : { weight }) };
}

function placed(title: string, unit: string, width: number, where: string, weight?: number) {
  return { ...left(title, unit, width, weight), name: `${title} ${where}` };
}

/** Figures of a placement; in-place ones are dropped first. */
function figures(where: string, weights: readonly (number | undefined)[]): FixedColumn[] {
  return [
    placed('time', '(us)', 10, where, weights[0]),
    placed('algbw', '(GB/s)', 8, where, weights[1]),
    placed('busbw', '(GB/s)', 8, where, weights[2]),
    placed('#wrong', '', 7, where, weights[3]),
  ];
}

/**
 * The table of nccl-tests: size, count, type, redop, root, then time, algbw, busbw and #wrong out of place and in
 * place. Two further columns have the shares of the limit; comment lines begin with `#`. A narrow terminal drops the
 * columns with the lowest weight.
 */
const columns: readonly FixedColumn[] = [
  left('size', '(B)', 12),
  left('count', '(elements)', 12, 5),
  left('type', '', 10, 8),
  left('redop', '', 8, 2),
  left('root', '', 6, 1),
  ...figures('out-of-place', [undefined, 7, undefined, undefined]),
  ...figures('in-place', [10, 3, 9, 4]),
  { ...left('out', '', 8), name: 'of limit out-of-place' },
  { ...left('in', '', 8, 6), name: 'of limit in-place' },
];
/** For split ranks. */
const groupColumn: FixedColumn = { ...left('group', '', 8), name: 'group' };

const tableIn = (room: number, split: boolean): FixedTable =>
  new FixedTable(split ? [...columns, groupColumn] : columns, room);

/** A common title of several columns, centered above those that are shown. */
function heading(
  titles: readonly (readonly [title: string, first: number, end: number])[],
  shown: readonly number[],
) {
  const parts = titles.map(([title, first, end]) => {
    const width = shown
      .filter((index) => index >= first && index < end)
      .reduce((sum, index) => sum + (columns[index]?.width ?? 0), 0);
    return width < title.length ? ' '.repeat(width) : centred(title, width);
  });
  return parts.join('');
}

export const collectivesTool: Tool = {
  name: 'collectives',
  head,
  groups: groupBySize,
  rows,
  foot,
};

/** The run and the column names. */
function head(report: ReportHead, ranks: readonly RankInfo[] = [], room = Infinity): string[] {
  const parts = [
    ['', 0, 5],
    ['out-of-place', 5, 9],
    ['in-place', 9, 13],
    ['of limit', 13, 15],
  ] as const;
  const table = tableIn(room, splitOf(report) !== undefined);
  return [...headLines(report), ...rankLines(ranks), ...table.head([heading(parts, table.kept)])];
}

function rankLines(ranks: readonly RankInfo[]): string[] {
  if (ranks.length === 0) return [];
  return [
    '# Using ranks',
    ...ranks.map(
      ({ rank, pid, host, device = 'cpu', group: color = 0 }) =>
        `#  Rank ${String(rank).padStart(2)} Group ${String(color).padStart(2)} Pid ${String(pid).padStart(6)} on ${host} device ${device}`,
    ),
  ];
}

/**
 * One line for the cases of one size, which differ only in `placement`. A case that did not run is `N/A`, with its
 * reason on a separate line.
 */
function rows(cases: readonly CaseResult[], room = Infinity): string[] {
  const first = cases[0];
  if (first === undefined) return [];
  const { bytes, count, dtype, op, root, group: color } = first.parameters;
  const outOfPlace = cases.find(({ parameters }) => parameters.placement === 'out-of-place');
  const inPlace = cases.find(({ parameters }) => parameters.placement === 'in-place');
  const line = tableIn(room, color !== undefined).row([
    ...[shown(bytes), shown(count), shown(dtype), shown(op ?? 'none'), shown(root ?? -1)],
    ...group(outOfPlace),
    ...group(inPlace),
    share(outOfPlace),
    share(inPlace),
    shown(color),
  ]);
  const values = [outOfPlace, inPlace].flatMap((result) => valueLines(result));
  const reasons = cases.flatMap((result) =>
    result.status === 'ok'
      ? []
      : [`# ${result.status} (${shown(result.parameters.placement)}): ${result.reason}`],
  );
  return [` ${line}`.trimEnd(), ...values, ...reasons];
}

/** The figures of nccl-tests' -I, -C and -S. */
function valueLines(result: CaseResult | undefined): string[] {
  if (result === undefined || !hasMeasurement(result) || result.values === undefined) return [];
  const { values } = result;
  const time = (name: string, key: string): string[] => {
    const seconds = values[key];
    return typeof seconds === 'number' ? [`${name} ${microseconds(seconds)}`] : [];
  };
  const { iterationVariationPercent: variation, measuredAt } = values;
  const told = [
    ...time('i_min', 'iterationMinSeconds'),
    ...time('i_max', 'iterationMaxSeconds'),
    ...time('i_p99', 'iterationP99Seconds'),
    ...(typeof variation === 'number' ? [`i_cv% ${variation.toFixed(1)}`] : []),
    ...time('cputime', 'cpuSeconds'),
    ...(typeof measuredAt === 'number' ? [`at ${timestamp(measuredAt)}`] : []),
  ];
  return told.length === 0 ? [] : [`# ${shown(result.parameters.placement)}: ${told.join(', ')}`];
}

/** Local time in nccl-tests' format. */
function timestamp(seconds: number): string {
  const date = new Date(seconds * 1e3);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')}`;
}

/** Wrong values, mean bus bandwidth as in nccl-tests, and the summary of the largest size. */
function foot(report: Pick<Report, 'run' | 'cases' | 'hosts'>): string[] {
  const measured = report.cases.filter(hasMeasurement);
  const wrong = measured.reduce((sum, { check }) => sum + (check.wrong ?? 0), 0);
  const failed = report.cases.some(({ status }) => status === 'error');
  const bounds = `# Out of bounds values : ${wrong} ${wrong === 0 && !failed ? 'OK' : 'FAILED'}`;
  const hosts = hostLines(report.hosts).map((line) => `# ${line}`);
  const nothing = nothingRan(report.cases).map((line) => `# ${line}`);
  if (nothing.length > 0) return [...(failed ? [bounds] : []), ...nothing, ...hosts];
  const mean =
    measured.reduce((sum, { busBandwidth }) => sum + busBandwidth.bytesPerSecond, 0) /
    measured.length;
  const largest = Math.max(0, ...measured.map(({ bytes }) => bytes));
  return [
    bounds,
    `# Avg bus bandwidth    : ${(mean / 1e9).toFixed(4)}`,
    '# (a mean over all sizes and placements: it says more about the sizes chosen than about the machine)',
    ...groupLines(report, measured, largest),
    ...hosts,
    ...choiceLines(measured),
    '#',
    ...[...repeatsOf(measured.filter(({ bytes }) => bytes === largest)).values()].flatMap(
      (repeats) => repeatedSummary(repeats).map((line) => `# ${line}`),
    ),
  ];
}

/** The split of the ranks; undefined without one. */
function splitOf({ run: { options } }: Pick<Report, 'run'>): string | undefined {
  return typeof options.split === 'string' ? options.split : undefined;
}

/** Each group at the largest size, and the slowest one with its ranks. */
function groupLines(
  report: Pick<Report, 'run'>,
  measured: readonly Measured[],
  largest: number,
): string[] {
  const split = splitOf(report);
  if (split === undefined) return [];
  const groups = groupsOf(split, Number(report.run.options.ranks)).flatMap(({ color, ranks }) => {
    const rates = measured
      .filter(({ parameters, bytes }) => parameters.group === color && bytes === largest)
      .map(({ busBandwidth }) => busBandwidth.bytesPerSecond);
    return rates.length === 0 ? [] : [{ color, ranks, rate: median(rates) }];
  });
  const [first, ...others] = groups.toSorted((a, b) => a.rate - b.rate);
  if (first === undefined) return [];
  const each = groups.map(({ color, rate }) => `${color}: ${gigabytes(rate)}`).join(', ');
  const lines = [`# Bus bandwidth of each group at ${largest} bytes (GB/s): ${each}`];
  if (others.length === 0) return lines;
  const share = percentText(first.rate / median(others.map(({ rate }) => rate)));
  const slowest = `${first.color} (ranks ${first.ranks.join(', ')})`;
  return [...lines, `# Slowest group: ${slowest}, ${share} of the median of the others`];
}

/** One summary for the cycles of a case: medians with their range. */
function repeatedSummary(repeats: readonly Measured[]): string[] {
  const lines = summaryLines(mergedRepeats(repeats));
  if (repeats.length === 1) return lines;
  const rates = spreadOf(repeats.map(({ busBandwidth }) => busBandwidth.bytesPerSecond));
  const range = rangeText(rates, bandwidthText);
  return [...lines, field('cycles', `medians of ${String(repeats.length)}; bandwidth ${range}`)];
}

/** NCCL's choices, a line for each range of sizes with the same choice. */
function choiceLines(cases: readonly Measured[]): string[] {
  const lines: { choice: string; first: number; last: number }[] = [];
  for (const { parameters, bytes } of cases) {
    const { algorithm, protocol } = parameters;
    if (typeof algorithm !== 'string' || typeof protocol !== 'string') continue;
    const choice = `${algorithm} ${protocol}`;
    const previous = lines.at(-1);
    if (previous?.choice === choice) previous.last = bytes;
    else lines.push({ choice, first: bytes, last: bytes });
  }
  return lines.map(
    ({ choice, first, last }) =>
      `# NCCL chose ${choice} for ${first === last ? String(first) : `${first} to ${last}`} bytes`,
  );
}

/** Groups cases that differ only in placement. */
function groupBySize(cases: readonly CaseResult[]): CaseResult[][] {
  const keyOf = ({ name, parameters }: CaseResult): string =>
    JSON.stringify([name, Object.entries(parameters).filter(([key]) => key !== 'placement')]);
  return [...groupBy(cases, keyOf).values()];
}

function group(result: CaseResult | undefined): string[] {
  if (result === undefined || !hasMeasurement(result)) return ['N/A', 'N/A', 'N/A', 'N/A'];
  const { statistics, algorithmBandwidth, busBandwidth, check } = result;
  return [
    microseconds(statistics.medianSeconds),
    gigabytes(algorithmBandwidth.bytesPerSecond),
    gigabytes(busBandwidth.bytesPerSecond),
    check.kind === 'exact' ? shown(check.wrong) : 'N/A',
  ];
}

function share(result: CaseResult | undefined): string {
  if (result === undefined || !hasMeasurement(result)) return '-';
  return limitShare(result);
}

function limitShare({ limit }: Measurement): string {
  return limit === null ? '-' : percentText(limit.ratio);
}

/** Two decimals if they are significant. */
function microseconds(seconds: number): string {
  const value = seconds * 1e6;
  return value.toFixed(value < 1e3 ? 2 : value < 1e5 ? 1 : 0);
}

function gigabytes(bytesPerSecond: number): string {
  return (bytesPerSecond / 1e9).toFixed(2);
}

function shown(value: Scalar | undefined): string {
  return value === undefined || value === null ? 'N/A' : String(value);
}

function centred(text: string, width: number): string {
  const before = Math.floor((width + text.length) / 2);
  return text.padStart(before).padEnd(width);
}
