// `gradlink p2p` as text: a matrix per case with its shortfalls below, and the slow links at the end.
import {
  hasMeasurement,
  type CaseResult,
  type Report,
  type ReportHead,
} from '../results/result.js';
import { p2pCases } from '../measure/p2p/cases.js';
import { betweenHosts, thereAndBack } from '../measure/p2p/between-hosts.js';
import { p2pMatrixCases } from '../measure/p2p/matrix.js';
import { hostLines } from './host-lines.js';
import { headLines } from './summary.js';
import { matrixLines as blocks } from './table.js';
import type { Measured } from './repeats.js';
import type { Tool } from './tool.js';
import { countText, percentText } from '../results/units.js';
import { unjudgedText } from './verdict-words.js';
import { groupBy } from '../results/grouping.js';

export const p2pTool: Tool = { name: 'p2p', head, groups: groupByName, rows, foot };

function head(report: ReportHead): string[] {
  return [
    ...headLines(report),
    '# Data goes from the place of the row to the place of the column.',
  ];
}

function groupByName(cases: readonly CaseResult[]): CaseResult[][] {
  return [...groupBy(cases, ({ name }) => name).values()];
}

/** The results of one case: at most two matrices, then a line for each figure that is not good. */
function rows(results: readonly CaseResult[], room = Infinity): string[] {
  const [first] = results;
  if (first === undefined) return [];
  const what =
    first.name === betweenHosts
      ? 'messages between two hosts, there and back, by the first rank of each'
      : [...p2pCases, ...p2pMatrixCases].find(({ name }) => name === first.name)?.what;
  const measured = results.filter(hasMeasurement);
  const singles = results.filter(
    ({ parameters: { figure } }) => figure === 'one' || figure === thereAndBack,
  );
  const totals = results.filter(({ parameters }) => parameters.figure === 'total');
  const both = singles.length > 0 && totals.length > 0;
  return [
    '',
    what === undefined ? first.name : `${first.name}: ${what}`,
    ...(measured.length === 0 ? [] : matrixLines(singles, both ? ', each direction' : '', room)),
    ...(measured.length === 0 ? [] : matrixLines(totals, both ? ', both directions' : '', room)),
    ...memoryLine(measured),
    ...multiprocessorsLine(measured),
    ...spreadLine(measured),
    ...verdictLines(measured),
    ...reasonLines(results),
  ];
}

/** The number of cases, and every slow link by name. */
function foot({ cases, hosts }: Pick<Report, 'cases' | 'hosts'>): string[] {
  const statuses = groupByName(cases).map((results) =>
    results.some(({ status }) => status === 'error')
      ? 'failed'
      : results.some(({ status }) => status === 'ok')
        ? 'ran'
        : 'waived',
  );
  const count = (status: string): number => statuses.filter((one) => one === status).length;
  const slow = slowWays(cases.filter(hasMeasurement));
  return [
    '',
    `# ${countText(statuses.length, 'case')}: ${count('ran')} ran, ${count('waived')} waived, ${count('failed')} failed`,
    ...(slow.length === 0
      ? cases.some(hasMeasurement)
        ? ['# Nothing is slow that can be judged.']
        : []
      : ['# Slow:', ...slow.map((line) => `#   ${line}`)]),
    ...hostLines(hosts).map((line) => `# ${line}`),
  ];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isLatency({ parameters }: CaseResult): boolean {
  return parameters.quantity === 'latency';
}

/** Size over time, as in nvbandwidth; the diagonal of the pair matrix is the memory's reads and writes. */
const localCase = 'device_local_copy';

/** A cell of the matrix: GB/s, or nanoseconds. */
function cell(result: Measured): string {
  const { busBandwidth, algorithmBandwidth, statistics } = result;
  const bandwidth = result.name === localCase ? algorithmBandwidth : busBandwidth;
  if (!isLatency(result)) return (bandwidth.bytesPerSecond / 1e9).toFixed(2);
  const seconds = busBandwidth.formula.endsWith('mean')
    ? statistics.meanSeconds
    : statistics.medianSeconds;
  return (seconds * 1e9).toFixed(0);
}

function matrixLines(results: readonly CaseResult[], which: string, room: number): string[] {
  const [first] = results;
  if (first === undefined) return [];
  const sides = (side: 'from' | 'to'): string[] =>
    [...new Set(results.map(({ parameters }) => text(parameters[side])))].sort((a, b) =>
      a.localeCompare(b, 'en', { numeric: true }),
    );
  const rows = sides('from');
  const columns = sides('to');
  const at = (from: string, to: string): string => {
    const result = results.find(
      ({ parameters }) => parameters.from === from && parameters.to === to,
    );
    if (result === undefined) return '-';
    return hasMeasurement(result) ? cell(result) : result.status === 'waived' ? 'waived' : 'failed';
  };
  const unit = isLatency(first) ? 'ns' : 'GB/s';
  return blocks(
    [
      { title: `${unit}${which}`, align: 'left' },
      ...columns.map((title) => ({ title, align: 'right' as const })),
    ],
    rows.map((from) => [from, ...columns.map((to) => at(from, to))]),
    room,
    '  ',
  );
}

/** The memory bandwidth of a local copy, which its limit applies to. */
function memoryLine(measured: readonly Measured[]): string[] {
  const local = measured.filter(({ name }) => name === localCase);
  if (local.length === 0) return [];
  const each = local.map(
    ({ parameters, busBandwidth }) =>
      `${text(parameters['from'])} ${(busBandwidth.bytesPerSecond / 1e9).toFixed(2)}`,
  );
  return [`  read and written: ${each.join(', ')} GB/s`];
}

/** The distance of multiprocessors from their memory. */
function multiprocessorsLine(measured: readonly Measured[]): string[] {
  const of = (name: string): number[] =>
    measured.map(({ values }) => values?.[name] ?? NaN).filter(Number.isFinite);
  const [nearest, farthest] = [of('nearestSeconds'), of('farthestSeconds')];
  if (nearest.length === 0) return [];
  const nanoseconds = (seconds: number): string => (seconds * 1e9).toFixed(0);
  return [
    `  mean of all multiprocessors, which range from ${nanoseconds(Math.min(...nearest))} to ${nanoseconds(Math.max(...farthest))} ns`,
  ];
}

function spreadLine(measured: readonly Measured[]): string[] {
  const samples = Math.max(0, ...measured.map(({ statistics }) => statistics.samples));
  if (samples === 0) return [];
  const spread = Math.max(
    ...measured.map(({ statistics: { minSeconds, maxSeconds, medianSeconds } }) =>
      medianSeconds > 0 ? (maxSeconds - minSeconds) / medianSeconds : 0,
    ),
  );
  const mean = measured.some(({ busBandwidth }) => busBandwidth.formula.endsWith('mean'));
  return [
    `  ${mean ? 'mean' : 'median'} of ${samples} sample${samples === 1 ? '' : 's'}, which spread by at most ${percentText(spread)}`,
  ];
}

function verdictLines(measured: readonly Measured[]): string[] {
  const good = measured.filter(({ verdict }) => verdict.level === 'good');
  const ratios = good.map(({ limit }) => limit?.ratio).filter((ratio) => ratio !== undefined);
  const bases = new Set(
    good.map(({ limit }) => limit?.basis).filter((basis) => basis !== undefined),
  );
  const shares = new Set([Math.min(...ratios), Math.max(...ratios)].map((one) => percentText(one)));
  const range =
    ratios.length === 0
      ? ''
      : `, ${[...shares].join(' to ')} of ${bases.size === 1 ? [...bases].join('') : 'their limits'}`;
  const shown = measured.filter(({ verdict }) => verdict.level !== 'good');
  const unjudged = shown.filter(({ verdict }) => verdict.level === 'none');
  return [
    ...(good.length === 0 ? [] : [`  good: ${good.length} of ${measured.length}${range}`]),
    ...good
      .filter(({ verdict }) => verdict.likelyCause !== null)
      .map((result) => `  note: ${wayOf(result)}: ${result.verdict.likelyCause ?? ''}`),
    ...shown
      .filter(({ verdict }) => verdict.level !== 'none')
      .map((result) => {
        const { level, text: words, likelyCause } = result.verdict;
        const because = likelyCause === null ? '' : `; ${likelyCause}`;
        return `  ${level}: ${wayOf(result)}: ${cell(result)} ${isLatency(result) ? 'ns' : 'GB/s'}, ${words}${because}`;
      }),
    ...[...new Set(unjudged.map(unjudgedText))].map((text) => `  ${text}`),
  ];
}

function reasonLines(results: readonly CaseResult[]): string[] {
  const lines = results.flatMap((result) => {
    if (result.status === 'ok') return [];
    const way = wayOf(result);
    return [`  ${result.status}: ${way === '' ? '' : `${way}: `}${result.reason}`];
  });
  return [...new Set(lines)];
}

/** `gpu:3 to gpu:5`; empty without ends. */
export function wayOf({ parameters: { from, to, figure } }: CaseResult): string {
  if (typeof from !== 'string' || typeof to !== 'string') return '';
  if (figure === thereAndBack) return `${from} - ${to}`;
  if (figure === 'total' && from !== to && from.startsWith('gpu') && to.startsWith('gpu'))
    return `${from} and ${to}`;
  return from === to ? `within ${from}` : `${from} to ${to}`;
}

interface SlowWay {
  readonly way: string;
  readonly figures: number;
  readonly worst: Measured;
}

/** Each link once, with its worst figure; links with the same cause share a line. */
function slowWays(measured: readonly Measured[]): string[] {
  const ways = new Map<string, Measured[]>();
  for (const result of measured) {
    const { level } = result.verdict;
    if (level !== 'poor' && level !== 'fair') continue;
    const way = wayOf(result);
    ways.set(way, [...(ways.get(way) ?? []), result]);
  }
  const share = ({ limit }: Measured): number => limit?.ratio ?? 1;
  const causes = new Map<string, SlowWay[]>();
  for (const [way, results] of ways) {
    const worst = results.reduce((least, one) => (share(one) < share(least) ? one : least));
    const cause = worst.verdict.likelyCause ?? '';
    const like = causes.get(cause) ?? [];
    causes.set(cause, [...like, { way, figures: results.length, worst }]);
  }
  return [...causes].map(([cause, slow]) => slowLine(cause, slow));
}

function slowLine(cause: string, slow: readonly SlowWay[]): string {
  const figures = slow.reduce((sum, one) => sum + one.figures, 0);
  const [first] = slow;
  if (first === undefined) return cause;
  const share = ({ worst }: SlowWay): number => worst.limit?.ratio ?? 1;
  const { worst } = slow.reduce((least, one) => (share(one) < share(least) ? one : least), first);
  const limit =
    worst.limit === null
      ? ''
      : `, ${percentText(worst.limit.ratio)} of ${worst.limit.basis ?? 'the limit'}`;
  const unit = isLatency(worst) ? 'ns' : 'GB/s';
  return `${slow.map(({ way }) => way).join(', ')}, in ${figures} figure${figures === 1 ? '' : 's'}, worst ${cell(worst)} ${unit}${limit} (${worst.name})${cause === '' ? '' : `: ${cause}`}`;
}
