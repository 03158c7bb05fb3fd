// The answer of a report: of each group of cases one figure, of what limit, and what it is worth.
import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type VerdictLevel,
} from '../../results/result.js';
import { bandwidthText, percentText, sizeText, timeText } from '../../results/units.js';
import type { LabelledRun } from '../charts/index.js';
import { groupBy } from '../charts/series.js';
import { rateOf } from '../charts/speedup.js';
import { parameterWords } from '../charts/parameters.js';
import type { Cell, PageTable } from './cells.js';
import { rateText, verdictWords } from './verdicts.js';

type Measured = CaseResult & Measurement;

const gravity: Readonly<Record<VerdictLevel, number>> = { poor: 0, fair: 1, good: 2, none: 3 };

function worst(cases: readonly Measured[]): Measured {
  return cases.reduce((a, b) => (gravity[b.verdict.level] < gravity[a.verdict.level] ? b : a));
}

function verdictCell(result: Measured): Cell {
  const { level } = result.verdict;
  return { text: verdictWords(result), ...(level === 'none' ? {} : { level }) };
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
  if (rate !== null) return rateText(rate);
  // Where nothing limits it, such as a training's step, bandwidth is not what is asked for.
  const isTime = isLatency(result) || limit === null || busBandwidth.bytesPerSecond <= 0;
  return isTime ? time : bandwidthText(busBandwidth.bytesPerSecond);
}

/** Between places every figure counts: the slowest and the fastest. */
function placedCells(name: string, cases: readonly Measured[]): Cell[] {
  const sorted = cases.toSorted((a, b) => b.statistics.medianSeconds - a.statistics.medianSeconds);
  const [slow, fast] = [sorted[0]!, sorted.at(-1)!];
  const share = slow.limit === null ? '' : percentText(slow.limit.ratio);
  const { from, to } = slow.parameters;
  const even = speedOf(slow) === speedOf(fast);
  return [
    { text: name },
    { text: even ? speedOf(slow) : `${speedOf(slow)} to ${speedOf(fast)}` },
    { text: share === '' || even ? share : `${share} from ${String(from)} to ${String(to)}` },
    verdictCell(worst(cases)),
  ];
}

/** What tells the leading case from others of its group. */
function leadingText(best: Measured, cases: readonly Measured[]): string {
  const differs = (of: (one: Measured) => unknown): boolean =>
    cases.some((one) => of(one) !== of(best));
  const { placement, bucketBytes } = best.parameters;
  return [
    ...(differs(({ parameters }) => parameters.placement) && typeof placement === 'string'
      ? [placement]
      : []),
    ...(differs(({ bytes }) => bytes) ? [sizeText(best.bytes)] : []),
    ...(differs(({ parameters }) => parameters.bucketBytes) && typeof bucketBytes === 'number'
      ? [`best bucket ${sizeText(bucketBytes)}`]
      : []),
  ]
    .map((text) => `, ${text}`)
    .join('');
}

function cellsOf(name: string, cases: readonly Measured[]): Cell[] {
  if (cases.length > 1 && cases.every(isPlaced)) return placedCells(name, cases);
  const best = leading(cases);
  const { limit } = best;
  return [
    { text: `${name}${leadingText(best, cases)}` },
    { text: speedOf(best) },
    { text: limit === null ? '' : percentText(limit.ratio) },
    verdictCell(best),
  ];
}

/** What sets apart groups of one case name. */
const groupedBy = ['kvStore', 'figure', 'mode', 'phase', 'optimizer', 'model', 'workers'] as const;

/** Where the phases of a step are cases of their own, the one that exchanges gradients is what is asked for. */
function isAsked({ parameters }: CaseResult): boolean {
  return parameters.phase !== 'forward';
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
    const measured = report.cases
      .filter(hasMeasurement)
      .filter((result) => result.status === 'ok' && isAsked(result));
    const groups = groupBy(measured as Measured[], ({ name, parameters }) =>
      [
        name,
        ...groupedBy.flatMap((key) => {
          const value = parameters[key];
          if (value === undefined || value === null || value === 'one') return [];
          return [parameterWords(key, value)];
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
