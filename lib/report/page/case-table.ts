// All cases of a tool in one table: a column for each varying parameter, and common values once.
import { identityOf, repeatsOf } from '../../results/repeats.js';
import { hasMeasurement, type CaseResult, type Scalar } from '../../results/result.js';
import { bandwidthText, percentText, timeText } from '../../results/units.js';
import type { LabelledRun } from '../charts/index.js';
import { constantWords, derivedParameters, ofWhom } from '../case-names.js';
import { parameterText, parameterTitle } from '../charts/parameters.js';
import { rateOf } from '../charts/speedup.js';
import type { Cell, PageTable } from './cells.js';
import type { Measured } from '../repeats.js';
import { rateText, verdictText } from '../verdict-words.js';

export interface CaseTable extends PageTable {
  /** `4 ranks`, `dtype float32`. */
  readonly constants: readonly string[];
}

interface Row {
  readonly label: string;
  readonly result: CaseResult;
  /** Its number among repeats in a run; absent if it is the only one. */
  readonly cycle?: number;
}

/** The cases of a run, with repeats numbered. */
function rowsOf({ label, report }: LabelledRun): Row[] {
  const repeats = repeatsOf(report.cases);
  return report.cases.map((result) => {
    const like = repeats.get(identityOf(result)) ?? [];
    return { label, result, ...(like.length > 1 ? { cycle: like.indexOf(result) + 1 } : {}) };
  });
}

function parameterCell(name: string, value: Scalar | undefined): Cell {
  const text = parameterText(name, value);
  return typeof value === 'number' ? { text, value } : { text };
}

interface Figure {
  readonly title: string;
  readonly of: (result: CaseResult) => Cell;
}

function figure(title: string, of: (result: Measured) => Cell): Figure {
  return {
    title,
    of: (result) => (hasMeasurement(result) ? of(result) : { text: '' }),
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

/** One of the case's figures; empty if absent. */
function ownCell(value: number | null | undefined, text: (value: number) => string): Cell {
  return value === undefined || value === null ? { text: '' } : { text: text(value), value };
}

const algorithm = figure('algbw', ({ algorithmBandwidth }) =>
  bandwidthCell(algorithmBandwidth.bytesPerSecond),
);
const bus = figure('busbw', ({ busBandwidth }) => bandwidthCell(busBandwidth.bytesPerSecond));

/** Both bandwidths; one column if they are equal, none if a rate was requested. */
function bandwidths(cases: readonly CaseResult[]): readonly Figure[] {
  const measured = cases.filter(hasMeasurement);
  if (measured.some((one) => rateOf(one) !== null) && measured.every(({ limit }) => limit === null))
    return [];
  const same = cases.every((one) => algorithm.of(one).text === bus.of(one).text);
  return same ? [{ ...bus, title: 'bandwidth' }] : [algorithm, bus];
}

/** The figures of this tool's cases, without empty columns. */
function figuresOf(cases: readonly CaseResult[]): readonly Figure[] {
  return [
    figure('rate', (one) => {
      const rate = rateOf(one);
      return rate === null ? { text: '' } : { text: rateText(rate), value: rate.value };
    }),
    figure('median', ({ statistics }) => timeCell(statistics.medianSeconds)),
    figure('min', ({ statistics }) => timeCell(statistics.minSeconds)),
    figure('p95', ({ statistics }) => timeCell(statistics.p95Seconds)),
    figure('communication', ({ values }) => ownCell(values?.communicationSeconds, timeText)),
    figure('not hidden', ({ values }) =>
      ownCell(values?.exposedSeconds, (seconds) => (seconds < 0 ? 'nothing' : timeText(seconds))),
    ),
    figure('of all_reduce', ({ values }) => ownCell(values?.timeOverAllReduce, percentText)),
    ...bandwidths(cases),
    figure('of limit', ({ limit }) => ownCell(limit?.ratio, percentText)),
    figure('wrong', ({ check }) => ownCell(check.wrong, String)),
  ];
}

function verdictCell(result: CaseResult): Cell {
  if (result.status !== 'ok') {
    return { text: `${result.status}: ${result.reason}`, level: result.status };
  }
  const text = verdictText(result);
  return { text, ...(text === result.verdict.level ? { level: text } : {}) };
}

export function caseTable(runs: readonly LabelledRun[]): CaseTable {
  const rows = runs.flatMap(rowsOf);
  const names = [...new Set(rows.flatMap(({ result }) => Object.keys(result.parameters)))];
  const asked = [
    { title: 'run', words: () => '', of: ({ label }: Row): Cell => ({ text: label }) },
    {
      title: 'cycle',
      words: () => '',
      of: ({ cycle }: Row): Cell =>
        cycle === undefined ? { text: '' } : { text: String(cycle), value: cycle },
    },
    {
      title: 'case',
      words: ({ result }: Row) => result.name,
      of: ({ result }: Row): Cell => ({ text: result.name }),
    },
    ...names
      .filter((name) => !derivedParameters.has(name))
      .map((name) => ({
        title: parameterTitle(name),
        words: (row: Row) => constantWords(name, row.result.parameters[name]),
        of: ({ result }: Row): Cell => parameterCell(name, result.parameters[name]),
      })),
  ];
  const constants: string[] = [];
  const columns: PageTable['columns'][number][] = [];
  const cells: ((row: Row) => Cell)[] = [];
  for (const { title, of, words } of asked) {
    const all = rows.map(of);
    const told = new Set(all.map(({ text }) => text).filter((text) => text !== ''));
    if (told.size === 0 || (title === 'run' && runs.length === 1)) continue;
    const telling = rows.filter((_, index) => all[index]?.text !== '');
    const results = (some: readonly Row[]): CaseResult[] => some.map(({ result }) => result);
    const whose = told.size === 1 ? ofWhom(results(telling), results(rows)) : undefined;
    if (whose !== undefined) {
      constants.push(`${words(telling[0]!)}${whose}`);
      continue;
    }
    const isNumber = all.some(({ value }) => value !== undefined);
    columns.push({ title, align: isNumber ? 'right' : 'left' });
    cells.push(of);
  }
  for (const { title, of } of figuresOf(rows.map(({ result }) => result))) {
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
