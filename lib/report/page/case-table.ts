// All cases of a tool in one table: a column for each parameter that changes, and what is the same everywhere said once.
import { hasMeasurement, type CaseResult, type Scalar } from '../../results/result.js';
import { bandwidthText, percentText, timeText } from '../../results/units.js';
import { binarySize } from '../charts/sweep.js';
import type { LabelledRun } from '../charts/index.js';
import type { Cell, PageTable } from './cells.js';

export interface CaseTable extends PageTable {
  /** `ranks 4`, `dtype float32`. */
  readonly constants: readonly string[];
}

interface Row {
  readonly label: string;
  readonly result: CaseResult;
}

/** What follows from another parameter, or is said in words elsewhere. */
const derived: ReadonlySet<string> = new Set(['count', 'flow']);

function parameterCell(name: string, value: Scalar | undefined): Cell {
  if (value === undefined || value === null) return { text: '' };
  if (typeof value !== 'number') return { text: String(value) };
  return { text: name.toLowerCase().endsWith('bytes') ? binarySize(value) : String(value), value };
}

interface Figure {
  readonly title: string;
  readonly of: (result: CaseResult) => Cell;
}

type Measured = Extract<CaseResult, { statistics: unknown }>;

function figure(title: string, of: (result: Measured) => Cell): Figure {
  return {
    title,
    of: (result) => (hasMeasurement(result) ? of(result as Measured) : { text: '' }),
  };
}

function bandwidthCell(bytesPerSecond: number): Cell {
  return bytesPerSecond > 0
    ? { text: bandwidthText(bytesPerSecond), value: bytesPerSecond }
    : { text: '' };
}

function timeCell(seconds: number): Cell {
  return { text: timeText(seconds), value: seconds };
}

const figures: readonly Figure[] = [
  figure('median', ({ statistics }) => timeCell(statistics.medianSeconds)),
  figure('min', ({ statistics }) => timeCell(statistics.minSeconds)),
  figure('p95', ({ statistics }) => timeCell(statistics.p95Seconds)),
  figure('algbw', ({ algorithmBandwidth }) => bandwidthCell(algorithmBandwidth.bytesPerSecond)),
  figure('busbw', ({ busBandwidth }) => bandwidthCell(busBandwidth.bytesPerSecond)),
  figure('of limit', ({ limit }) =>
    limit === null ? { text: '' } : { text: percentText(limit.ratio), value: limit.ratio },
  ),
  figure('wrong', ({ check }) =>
    check.wrong === null ? { text: '' } : { text: String(check.wrong), value: check.wrong },
  ),
];

function verdictCell(result: CaseResult): Cell {
  if (result.status !== 'ok') {
    return { text: `${result.status}: ${result.reason}`, level: result.status };
  }
  const { level } = result.verdict;
  return level === 'none' ? { text: '' } : { text: level, level };
}

/** Of the runs of one tool. */
export function caseTable(runs: readonly LabelledRun[]): CaseTable {
  const rows = runs.flatMap(({ label, report }): Row[] =>
    report.cases.map((result) => ({ label, result })),
  );
  const names = [...new Set(rows.flatMap(({ result }) => Object.keys(result.parameters)))];
  const asked = [
    { title: 'run', of: ({ label }: Row): Cell => ({ text: label }) },
    { title: 'case', of: ({ result }: Row): Cell => ({ text: result.name }) },
    ...names
      .filter((name) => !derived.has(name))
      .map((name) => ({
        title: name === 'bytes' ? 'size' : name,
        of: ({ result }: Row): Cell => parameterCell(name, result.parameters[name]),
      })),
  ];
  const constants: string[] = [];
  const columns: PageTable['columns'][number][] = [];
  const cells: ((row: Row) => Cell)[] = [];
  for (const { title, of } of asked) {
    const all = rows.map(of);
    const told = new Set(all.map(({ text }) => text).filter((text) => text !== ''));
    if (told.size === 0 || (title === 'run' && runs.length === 1)) continue;
    if (told.size === 1 && all.length > 1) {
      constants.push(`${title} ${[...told].join('')}`);
      continue;
    }
    const isNumber = all.some(({ value }) => value !== undefined);
    columns.push({ title, align: isNumber ? 'right' : 'left' });
    cells.push(of);
  }
  for (const { title, of } of figures) {
    const told = new Set(rows.map(({ result }) => of(result).text).filter((text) => text !== ''));
    if (told.size === 0) continue;
    if (title === 'wrong' && told.size === 1 && told.has('0')) {
      constants.push('no wrong elements');
      continue;
    }
    columns.push({ title, align: 'right' });
    cells.push(({ result }) => of(result));
  }
  if (rows.some(({ result }) => verdictCell(result).text !== '')) {
    columns.push({ title: 'verdict', align: 'left' });
    cells.push(({ result }) => verdictCell(result));
  }
  return { columns, rows: rows.map((row) => cells.map((of) => of(row))), constants };
}
