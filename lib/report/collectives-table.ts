import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type Report,
  type ReportHead,
  type Scalar,
} from '../results/result.js';
import type { RankInfo } from '../measure/run.js';
import { hostLines } from './host-lines.js';
import { environmentLine, gpuLines, summaryLines } from './summary.js';
import { groupBy, type Tool } from './tool.js';
import { percentText } from '../results/units.js';

/**
 * The table of nccl-tests: size, count, type, redop, root, then time, algbw, busbw and #wrong out of place and in
 * place. Two columns more at the end say how near the limit each came; lines that are no data begin with `#`.
 */
const leftWidths = [12, 12, 10, 8, 6] as const;
const groupWidths = [10, 8, 8, 7] as const;
const ratioWidth = 8;

export const collectivesTool: Tool = {
  name: 'collectives',
  head,
  groups: groupBySize,
  rows,
  foot,
};

/** What ran and where, and the names of the columns. */
function head({ run, environment, gpus }: ReportHead, ranks: readonly RankInfo[] = []): string[] {
  const group = groupWidths.reduce((sum, width) => sum + width, 0);
  const left = leftWidths.reduce((sum, width) => sum + width, 0);
  const blank = ' '.repeat(left);
  return [
    `# gradlink ${run.packageVersion}: ${[run.tool, ...run.commandLine].join(' ')}`,
    `# ${environmentLine(environment)}`,
    ...(gpus === undefined ? [] : gpuLines(gpus).map((line) => `# ${line}`)),
    ...rankLines(ranks),
    comment(
      `${blank}${centred('out-of-place', group)}${centred('in-place', group)}${centred('of limit', 2 * ratioWidth)}`,
    ),
    comment(
      row(['size', 'count', 'type', 'redop', 'root'], leftWidths) +
        row(['time', 'algbw', 'busbw', '#wrong'], groupWidths).repeat(2) +
        row(['out', 'in'], [ratioWidth, ratioWidth]),
    ),
    comment(
      row(['(B)', '(elements)', '', '', ''], leftWidths) +
        row(['(us)', '(GB/s)', '(GB/s)', ''], groupWidths).repeat(2),
    ),
  ];
}

function rankLines(ranks: readonly RankInfo[]): string[] {
  if (ranks.length === 0) return [];
  return [
    '# Using ranks',
    ...ranks.map(
      ({ rank, pid, host, device = 'cpu' }) =>
        `#  Rank ${String(rank).padStart(2)} Group  0 Pid ${String(pid).padStart(6)} on ${host} device ${device}`,
    ),
  ];
}

/**
 * One line for the cases of one size: those that differ by `placement` only. A case that did not run is `N/A` in the
 * line, with its reason in a line of its own.
 */
function rows(cases: readonly CaseResult[]): string[] {
  const first = cases[0];
  if (first === undefined) return [];
  const { bytes, count, dtype, op, root } = first.parameters;
  const outOfPlace = cases.find(({ parameters }) => parameters.placement === 'out-of-place');
  const inPlace = cases.find(({ parameters }) => parameters.placement === 'in-place');
  const line =
    row(
      [shown(bytes), shown(count), shown(dtype), shown(op ?? 'none'), shown(root ?? -1)],
      leftWidths,
    ) +
    row(group(outOfPlace), groupWidths) +
    row(group(inPlace), groupWidths) +
    row([share(outOfPlace), share(inPlace)], [ratioWidth, ratioWidth]);
  const values = [outOfPlace, inPlace].flatMap((result) => valueLines(result));
  const reasons = cases.flatMap((result) =>
    result.status === 'ok'
      ? []
      : [`# ${result.status} (${shown(result.parameters.placement)}): ${result.reason}`],
  );
  return [` ${line}`.trimEnd(), ...values, ...reasons];
}

/** What nccl-tests' -I, -C and -S ask for. */
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

/** Of this machine's clock, as nccl-tests writes it. */
function timestamp(seconds: number): string {
  const date = new Date(seconds * 1e3);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')}`;
}

/** Wrong values, mean bus bandwidth as nccl-tests defines it, and the summary of the largest size. */
function foot(report: Pick<Report, 'cases' | 'hosts'>): string[] {
  const measured = report.cases.filter(hasMeasurement);
  const wrong = measured.reduce((sum, { check }) => sum + (check.wrong ?? 0), 0);
  const failed = report.cases.some(({ status }) => status === 'error');
  const mean =
    measured.reduce((sum, { busBandwidth }) => sum + busBandwidth.bytesPerSecond, 0) /
    Math.max(measured.length, 1);
  const largest = Math.max(0, ...measured.map(({ bytes }) => bytes));
  return [
    `# Out of bounds values : ${wrong} ${wrong === 0 && !failed ? 'OK' : 'FAILED'}`,
    `# Avg bus bandwidth    : ${(mean / 1e9).toFixed(4)}`,
    '# (a mean over all sizes and placements: it says more about the sizes chosen than about the machine)',
    ...hostLines(report.hosts).map((line) => `# ${line}`),
    ...choiceLines(measured),
    '#',
    ...measured
      .filter(({ bytes }) => bytes === largest)
      .flatMap((result) => summaryLines(result).map((line) => `# ${line}`)),
  ];
}

/** What NCCL chose, as a line for each run of sizes with one choice. */
function choiceLines(cases: readonly (CaseResult & Measurement)[]): string[] {
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

/** Cases that differ by placement only are one line. */
function groupBySize(cases: readonly CaseResult[]): CaseResult[][] {
  return groupBy(cases, ({ name, parameters }) =>
    JSON.stringify([name, Object.entries(parameters).filter(([key]) => key !== 'placement')]),
  );
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

/** Two decimals while they mean something. */
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

function row(cells: readonly string[], widths: readonly number[]): string {
  return cells.map((cell, index) => cell.padStart(widths[index] ?? 0)).join('');
}

function centred(text: string, width: number): string {
  const before = Math.floor((width + text.length) / 2);
  return text.padStart(before).padEnd(width);
}

function comment(line: string): string {
  return `#${line}`.trimEnd();
}
