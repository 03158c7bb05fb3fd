// `gradlink pairs` as text: similar to OSU's programs, with a line for each size; slow pairs are listed below.
import { median } from 'simple-statistics';

import {
  hasMeasurement,
  type CaseResult,
  type Report,
  type ReportHead,
} from '../results/result.js';
import { countText, sizeText } from '../results/units.js';
import type { RankInfo } from '../measure/common-run.js';
import { headLines } from './summary.js';
import { matrixLines } from './table.js';
import type { Measured } from './repeats.js';
import type { Tool } from './tool.js';
import { groupBy } from '../results/grouping.js';

/** OSU's widths of the size and of each figure. */
const sizeWidth = 10;
const figureWidth = 18;

interface Column {
  readonly title: string;
  readonly read: (cases: readonly Measured[]) => string;
}

/** The median of several pairs. */
const middle = (cases: readonly Measured[], read: (one: Measured) => number): number =>
  median(cases.map(read));

const microseconds = (seconds: number): string => (seconds * 1e6).toFixed(2);
const gigabytes = (bytesPerSecond: number): string => (bytesPerSecond / 1e9).toFixed(3);

const rateOf = ({ busBandwidth }: Measured): number => busBandwidth.bytesPerSecond;
const bandwidthColumn = (title: string): Column => ({
  title: `${title} (GB/s)`,
  read: (cases) => gigabytes(middle(cases, rateOf)),
});

const columns: Readonly<Record<string, readonly Column[]>> = {
  latency: [
    {
      title: 'Latency (us)',
      read: (cases) => microseconds(middle(cases, (one) => one.statistics.medianSeconds)),
    },
    {
      title: 'p99 (us)',
      read: (cases) => microseconds(middle(cases, (one) => one.statistics.p99Seconds)),
    },
  ],
  bandwidth: [bandwidthColumn('Bandwidth')],
  bidirectional: [bandwidthColumn('Both ways')],
  message_rate: [
    {
      title: 'Messages/s',
      read: (cases) => middle(cases, (one) => one.values?.messagesPerSecond ?? 0).toFixed(0),
    },
  ],
};

function line(first: string, cells: readonly string[]): string {
  return first.padEnd(sizeWidth) + cells.map((cell) => cell.padStart(figureWidth)).join('');
}

function head(report: ReportHead, ranks: readonly RankInfo[] = []): string[] {
  const { kinds, ranks: size, backend, hosts, eachWay = Number(size) > 2 } = report.run.options;
  const shown = String(kinds).split(',');
  const pairs = (Number(size) * (Number(size) - 1)) / 2;
  const ways = eachWay === true && shown.includes('bandwidth') ? ', of bandwidth each way' : '';
  const of =
    pairs > 1 || ways !== ''
      ? `; figures are the median of ${countText(pairs, 'pair')}${ways}`
      : '';
  return [
    ...headLines(report),
    `# ${String(size)} ranks over ${String(backend)}, ${String(hosts)} host${hosts === 1 ? '' : 's'}${of}`,
    ...ranks.map(
      ({ rank, pid, host }) =>
        `#  Rank ${String(rank).padStart(2)} Pid ${String(pid).padStart(6)} on ${host}`,
    ),
    line(
      '# Size',
      shown.flatMap((kind) => (columns[kind] ?? []).map(({ title }) => title)),
    ),
  ];
}

/** One size: its cases of every kind. */
function rows(results: readonly CaseResult[]): string[] {
  const [first] = results;
  if (first === undefined) return [];
  const cells = [...groupBy(results, ({ name }) => name)].flatMap(([name, cases]) => {
    const measured = cases.filter(hasMeasurement);
    const own = columns[name] ?? [];
    return own.map(({ read }) => (measured.length === 0 ? '-' : read(measured)));
  });
  const reasons = results.flatMap((one) =>
    one.status === 'ok' ? [] : [`# ${one.status}: ${wayOf(one)}${one.name}: ${one.reason}`],
  );
  return [line(String(first.parameters.bytes), cells), ...reasons];
}

function wayOf({ name, parameters: { from, to, hosts } }: CaseResult): string {
  if (typeof from !== 'string' || typeof to !== 'string') return '';
  return `${from} ${name === 'bandwidth' ? 'to' : '-'} ${to}${typeof hosts === 'string' ? ` (${hosts})` : ''}: `;
}

/** At the smallest size for latency, else at the largest. */
function shownAt(cases: readonly Measured[]): Measured[] {
  const sizes = cases.map(({ parameters }) => Number(parameters.bytes));
  const isLatency = cases[0]?.name === 'latency';
  const size = isLatency ? Math.min(...sizes) : Math.max(...sizes);
  return cases.filter(({ parameters }) => parameters.bytes === size);
}

function figureOf(one: Measured): string {
  return one.name === 'latency'
    ? microseconds(one.statistics.medianSeconds)
    : gigabytes(rateOf(one));
}

const unitOf = (name: string): string => (name === 'latency' ? 'us' : 'GB/s');

/** Symmetric figures only from the lower rank of each pair to the higher one. */
function matrix(cases: readonly Measured[], room: number): string[] {
  const [first] = cases;
  if (first === undefined) return [];
  const side = (one: Measured, name: 'from' | 'to'): string => String(one.parameters[name]);
  const numbered = (names: readonly string[]): string[] =>
    [...new Set(names)].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const from = numbered(cases.map((one) => side(one, 'from')));
  const to = numbered(cases.map((one) => side(one, 'to')));
  const cell = (row: string, column: string): string => {
    const found = cases.find((one) => side(one, 'from') === row && side(one, 'to') === column);
    return found === undefined ? '-' : figureOf(found);
  };
  const size = sizeText(Number(first.parameters.bytes));
  return [
    `# ${first.name} of ${size}, from the rank of the row to that of the column:`,
    ...matrixLines(
      [
        { title: unitOf(first.name), align: 'left' },
        ...to.map((title) => ({ title, align: 'right' as const })),
      ],
      from.map((row) => [row, ...to.map((column) => cell(row, column))]),
      room,
      '#   ',
    ),
  ];
}

/** Matrices of the pairs, and every slow one by name; errors were reported when they occurred. */
function foot({ cases }: Pick<Report, 'cases'>, room = Infinity): string[] {
  const measured = cases.filter(hasMeasurement);
  const pairs = measured.filter(({ parameters }) => typeof parameters.from === 'string');
  const slow = pairs.filter(({ verdict: { level } }) => level === 'fair' || level === 'poor');
  const wrong = measured.reduce((sum, { check }) => sum + (check.wrong ?? 0), 0);
  const failed = cases.some(({ status }) => status === 'error');
  const checked = measured.some(({ check }) => check.kind === 'exact');
  return [
    ...[...groupBy(pairs, ({ name }) => name).values()].flatMap((of) => matrix(shownAt(of), room)),
    ...(slow.length > 0 ? ['# Slow pairs:', ...slow.map(slowLine)] : []),
    ...(pairs.length > 0 && slow.length === 0 ? [noneSlow(pairs)] : []),
    ...notes(measured),
    checked || failed
      ? `# Wrong bytes : ${wrong} ${wrong === 0 && !failed ? 'OK' : 'FAILED'}`
      : '# Bytes were not checked.',
  ];
}

function noneSlow(pairs: readonly Measured[]): string {
  const hidden = pairs.filter(({ verdict: { reason } }) => reason === 'host time').length;
  const but = hidden === 0 ? '' : `; ${hidden} of ${pairs.length} figures cannot be judged`;
  return `# No pair is slow beside the others${but}.`;
}

/** Explanations of figures that are not judged, once for each kind. */
function notes(measured: readonly Measured[]): string[] {
  const lines = measured.flatMap(({ name, verdict: { level, likelyCause } }) =>
    level === 'none' && likelyCause !== null ? [`# Note: ${name}: ${likelyCause}`] : [],
  );
  return [...new Set(lines)];
}

function slowLine(one: Measured): string {
  const { text, likelyCause, level } = one.verdict;
  const size = sizeText(Number(one.parameters.bytes));
  const cause = likelyCause === null ? '' : `; ${likelyCause}`;
  return `#   ${level}: ${wayOf(one)}${one.name} of ${size}: ${figureOf(one)} ${unitOf(one.name)}, ${text}${cause}`;
}

export const pairsTool: Tool = {
  name: 'pairs',
  head,
  groups: (cases) => [...groupBy(cases, ({ parameters }) => String(parameters.bytes)).values()],
  rows,
  foot,
};
