// The answer of a report: of each group of cases one figure, of what limit, and what it is worth.
import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type VerdictLevel,
} from '../../results/result.js';
import { bandwidthText, percentText, timeText } from '../../results/units.js';
import { binarySize } from '../charts/sweep.js';
import type { LabelledRun } from '../charts/index.js';
import { groupBy } from '../charts/series.js';
import { rateOf } from '../charts/speedup.js';
import type { Cell, PageTable } from './cells.js';

type Measured = CaseResult & Measurement;

const gravity: Readonly<Record<VerdictLevel, number>> = { poor: 0, fair: 1, good: 2, none: 3 };

function worst(cases: readonly Measured[]): VerdictLevel {
  return cases
    .map(({ verdict }) => verdict.level)
    .reduce((a, b) => (gravity[b] < gravity[a] ? b : a), 'none');
}

/** Of one operation at several sizes the largest, where bandwidth decides; of several placements the faster one. */
function leading(cases: readonly Measured[]): Measured {
  return cases.reduce((a, b) =>
    b.bytes > a.bytes ||
    (b.bytes === a.bytes && b.statistics.medianSeconds < a.statistics.medianSeconds)
      ? b
      : a,
  );
}

function isPlaced({ parameters }: CaseResult): boolean {
  return typeof parameters.from === 'string' && typeof parameters.to === 'string';
}

function isLatency({ parameters }: CaseResult): boolean {
  return parameters.quantity === 'latency';
}

function speedOf(result: Measured): string {
  const { statistics, busBandwidth, limit } = result;
  const time = timeText(statistics.medianSeconds);
  const rate = limit === null ? rateOf(result) : null;
  if (rate !== null) return `${String(Number(rate.value.toPrecision(4)))} ${rate.unit}/s`;
  // Where nothing limits it, such as a training's step, bandwidth is not what is asked for.
  const isTime = isLatency(result) || limit === null || busBandwidth.bytesPerSecond <= 0;
  return isTime ? time : bandwidthText(busBandwidth.bytesPerSecond);
}

/** Between places every figure counts: the slowest and the fastest. */
function placedCells(name: string, cases: readonly Measured[]): Cell[] {
  const sorted = cases.toSorted((a, b) => b.statistics.medianSeconds - a.statistics.medianSeconds);
  const [slow, fast] = [sorted[0]!, sorted.at(-1)!];
  const level = worst(cases);
  const share = slow.limit === null ? '' : percentText(slow.limit.ratio);
  const { from, to } = slow.parameters;
  const range =
    speedOf(slow) === speedOf(fast) ? speedOf(slow) : `${speedOf(slow)} to ${speedOf(fast)}`;
  return [
    { text: name },
    { text: range },
    { text: share === '' ? '' : `${share} at ${String(from)} to ${String(to)}` },
    level === 'none' ? { text: '' } : { text: level, level },
  ];
}

function cellsOf(name: string, cases: readonly Measured[]): Cell[] {
  if (cases.length > 1 && cases.every(isPlaced)) return placedCells(name, cases);
  const best = leading(cases);
  const { limit, verdict, bytes } = best;
  const sized = cases.some((one) => one.bytes !== bytes);
  return [
    { text: sized ? `${name}, ${binarySize(bytes)}` : name },
    { text: speedOf(best) },
    { text: limit === null ? '' : percentText(limit.ratio) },
    verdict.level === 'none' ? { text: '' } : { text: verdict.level, level: verdict.level },
  ];
}

/** What sets apart groups of one case name. */
const groupedBy = ['kvStore', 'figure', 'mode', 'optimizer', 'model', 'workers'] as const;

function workersText(count: number): string {
  return `${String(count)} ${count === 1 ? 'worker' : 'workers'}`;
}

/** Without the columns that say nothing of any group. */
function filled({ columns, rows }: PageTable): PageTable {
  const told = columns.map((_, index) => rows.some((row) => row[index]?.text !== ''));
  return {
    columns: columns.filter((_, index) => told[index]),
    rows: rows.map((row) => row.filter((_, index) => told[index])),
  };
}

/** A line for each group of cases that ran. */
export function headline(runs: readonly LabelledRun[]): PageTable {
  const several = runs.length > 1;
  const rows = runs.flatMap(({ label, report }) => {
    const measured = report.cases.filter(hasMeasurement).filter(({ status }) => status === 'ok');
    const groups = groupBy(measured as Measured[], ({ name, parameters }) =>
      [
        name,
        ...groupedBy.flatMap((key) => {
          const value = parameters[key];
          if (value === undefined || value === null || value === 'one') return [];
          return key === 'workers' ? [workersText(Number(value))] : [String(value)];
        }),
      ].join(', '),
    );
    return [...groups].map(([name, cases]): Cell[] => [
      ...(several ? [{ text: label }] : []),
      ...cellsOf(name, cases),
    ]);
  });
  return filled({
    columns: [
      ...(several ? [{ title: 'run', align: 'left' } as const] : []),
      { title: 'what', align: 'left' },
      { title: 'how fast', align: 'right' },
      { title: 'of its limit', align: 'right' },
      { title: 'verdict', align: 'left' },
    ],
    rows,
  });
}
