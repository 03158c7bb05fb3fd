// Heat maps of transfers from each place to each other.
import type { CaseResult } from '../../results/result.js';
import { percentText, sizeText } from '../../results/units.js';
import { repeatedEntries, setOf, slug, type Entry } from './series.js';
import { heat } from './theme.js';
import type { Chart, ChartTable, Datum, LabelledRun, VegaLiteSpec } from './types.js';
import { groupBy } from '../../results/grouping.js';
import type { Measured } from '../repeats.js';

function side(result: CaseResult, name: 'from' | 'to'): string {
  const value = result.parameters[name];
  return typeof value === 'string' ? value : '';
}

function isLatency({ parameters }: CaseResult): boolean {
  return parameters.quantity === 'latency';
}

interface Unit {
  readonly name: string;
  readonly of: (result: Measured) => number;
}

/** Latencies between hosts are at least some microseconds. */
const microsecondsFrom = 1e-6;

function unitOf(entries: readonly Entry[]): Unit {
  const latencies = entries.map(({ result }) => result).filter(isLatency);
  if (latencies.length === 0) {
    return { name: 'GB/s', of: ({ busBandwidth }) => busBandwidth.bytesPerSecond / 1e9 };
  }
  const inUs = latencies.every(
    ({ statistics: { medianSeconds } }) => medianSeconds >= microsecondsFrom,
  );
  const factor = inUs ? 1e6 : 1e9;
  return {
    name: inUs ? 'us' : 'ns',
    of: ({ statistics: { medianSeconds } }) => medianSeconds * factor,
  };
}

function shown(result: Measured, { name, of }: Unit): string {
  const value = of(result);
  return value.toFixed(name === 'ns' || value >= 1000 ? 0 : value >= 100 ? 1 : 2);
}

/** Slow against its limit or the others, or reported for one of its ends. */
function isSlow({ verdict: { level, reason } }: Measured): boolean {
  return level === 'poor' || reason === 'excused';
}

function sides(entries: readonly Entry[], name: 'from' | 'to'): string[] {
  return [...new Set(entries.map(({ result }) => side(result, name)))].sort((a, b) =>
    a.localeCompare(b, 'en', { numeric: true }),
  );
}

/** Figures this close to the largest look alike. */
const evenFrom = 0.8;

/** Figures within a place are of another kind: their range would hide those between places. */
export function placesBetween<E extends Entry>(entries: readonly E[]): readonly E[] {
  const between = entries.filter(({ result }) => side(result, 'from') !== side(result, 'to'));
  return between.length > 0 ? between : entries;
}

function matrixSpec(entries: readonly Entry[], width: number): VegaLiteSpec {
  const unit = unitOf(entries);
  const figures = placesBetween(entries).map(({ result }) => unit.of(result));
  const [least, most] = [Math.min(...figures), Math.max(...figures)];
  const domain = [Math.min(least, most * evenFrom), most];
  const middle = (domain[0]! + most) / 2;
  const values = entries.map(({ result }): Datum => {
    const value = unit.of(result);
    return {
      from: side(result, 'from'),
      to: side(result, 'to'),
      value,
      text: shown(result, unit),
      light: value > middle,
      slow: isSlow(result),
    };
  });
  const rows = sides(entries, 'from');
  const columns = sides(entries, 'to');
  const cell = Math.min(64, Math.floor((width - 90) / columns.length));
  const x = {
    field: 'to',
    type: 'nominal',
    sort: columns,
    axis: { title: 'to', orient: 'top', labelAngle: cell < 52 ? -45 : 0, domain: false },
  } as const;
  const y = {
    field: 'from',
    type: 'nominal',
    sort: rows,
    axis: { title: 'from', domain: false },
  } as const;
  return {
    width: cell * columns.length,
    height: Math.max(26, Math.min(cell, 40)) * rows.length,
    data: { values },
    layer: [
      {
        mark: { type: 'rect' },
        encoding: {
          x,
          y,
          color: {
            field: 'value',
            type: 'quantitative',
            scale: { range: [...heat.range], domain, clamp: true },
            legend: null,
          },
        },
      },
      {
        transform: [{ filter: 'datum.slow' }],
        mark: { type: 'rect', filled: false, stroke: heat.slow, strokeWidth: 3 },
        encoding: { x, y },
      },
      {
        mark: { type: 'text', fontSize: cell < 44 ? 9 : 12 },
        encoding: {
          x,
          y,
          text: { field: 'text' },
          color: {
            condition: { test: 'datum.light', value: heat.lightWords },
            value: heat.darkWords,
          },
        },
      },
    ],
  };
}

function tableOf(entries: readonly Entry[]): ChartTable {
  const unit = unitOf(entries);
  return {
    columns: [
      { title: 'from', align: 'left' },
      { title: 'to', align: 'left' },
      { title: unit.name, align: 'right' },
      { title: 'of limit', align: 'right' },
      { title: 'limit', align: 'left' },
      { title: 'verdict', align: 'left' },
    ],
    rows: entries.map(({ result }) => [
      side(result, 'from'),
      side(result, 'to'),
      shown(result, unit),
      result.limit === null ? '' : percentText(result.limit.ratio),
      result.limit?.basis ?? '',
      result.verdict.level,
    ]),
  };
}

/** One map per case whose figures have a source and a target. */
export function matrixCharts(runs: readonly LabelledRun[]): Chart[] {
  const placed = repeatedEntries(runs).filter(
    ({ result }) => side(result, 'from') !== '' && side(result, 'to') !== '',
  );
  const key = ({ run, result }: Entry): string =>
    JSON.stringify([setOf(run), result.name, result.parameters.figure ?? null, result.bytes]);
  const severalSets = new Set(runs.map(setOf)).size > 1;
  return [...groupBy(placed, key).values()].flatMap((entries, index) => {
    const [first] = entries;
    if (first === undefined || entries.length < 2) return [];
    const { run, result } = first;
    const unit = unitOf(entries).name;
    const totals = result.parameters.figure === 'total' ? ', both directions together' : '';
    const of = severalSets ? `, ${setOf(run)}` : '';
    const several = placed.some(
      ({ result: one }) => one.name === result.name && one.bytes !== result.bytes,
    );
    const size = several ? ` of ${sizeText(result.bytes)}` : '';
    return [
      {
        id: `matrix-${String(index)}-${slug(result.name)}`,
        title: `${result.name}${size}: ${unit}${totals}${of}`,
        note: `Data goes from the place of the row to the place of the column. Medians.${entries.some(({ result: one }) => isSlow(one)) ? ' A red frame: far slower than it should be.' : ''}`,
        spec: (width: number) => matrixSpec(entries, width),
        table: tableOf(entries),
      },
    ];
  });
}
