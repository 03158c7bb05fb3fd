// Speedup over the number of workers, with the ideal.
import type { Measurement } from '../../results/result.js';
import { percentText } from '../../results/units.js';
import { numeric, repeatedEntries, seriesNames, type Entry, type RepeatedEntry } from './series.js';
import { endsOf, labelLayers, lineLabels } from './line-labels.js';
import { dashes, ink, legendHeight } from './theme.js';
import type { Chart, Datum, LabelledRun, VegaLiteSpec } from './types.js';
import { groupBy } from '../../results/grouping.js';

/** Parameters that count workers; the first one present applies. */
const counts = ['workers', 'ranks', 'processes', 'gpus', 'devices'] as const;

interface Point {
  readonly series: string;
  readonly workers: number;
  readonly throughput: number;
  readonly unit: string;
  readonly speedup: number;
}

function workersOf({ result }: Entry): number | undefined {
  for (const name of counts) {
    const value = numeric(result, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** The rate of all workers: the first of the case's figures that is a rate. */
export function rateOf(
  result: Measurement,
): { readonly unit: string; readonly value: number } | null {
  for (const [name, value] of Object.entries(result.values ?? {})) {
    const [, unit] = /^(\w+)PerSecond$/.exec(name) ?? [];
    if (unit !== undefined && unit !== 'bytes' && value !== null && value > 0) {
      return { unit, value };
    }
  }
  return null;
}

function pointsOf(runs: readonly LabelledRun[]): Point[] {
  const entries = repeatedEntries(runs).filter(
    (entry) => workersOf(entry) !== undefined && rateOf(entry.result) !== null,
  );
  // Runs with a single number of workers each form one line; runs that repeat numbers are separate lines.
  const pooled = entries.map((entry): RepeatedEntry => ({
    ...entry,
    run: { label: '', report: entry.run.report },
  }));
  const poolNames = seriesNames(pooled, { ignored: counts });
  const repeated =
    new Set(pooled.map((entry) => `${poolNames.get(entry) ?? ''} ${String(workersOf(entry))}`))
      .size < pooled.length;
  const used = repeated ? entries : pooled;
  const names = repeated ? seriesNames(used, { ignored: counts }) : poolNames;
  const lines = groupBy(used, (entry) => names.get(entry) ?? entry.result.name);
  return [...lines].flatMap(([series, line]) => {
    const rows = line
      .map((entry) => ({ workers: workersOf(entry) ?? 1, ...rateOf(entry.result)! }))
      .sort((a, b) => a.workers - b.workers);
    const [first] = rows;
    if (first === undefined || new Set(rows.map(({ workers }) => workers)).size < 2) return [];
    // The smallest number counts as ideal, because fewer are unknown.
    const one = first.value / first.workers;
    return rows.map(({ workers, value, unit }) => ({
      series,
      workers,
      throughput: value,
      unit,
      speedup: value / one,
    }));
  });
}

function speedupSpec(points: readonly Point[], width: number): VegaLiteSpec {
  const values = points.map(({ series, workers, speedup }): Datum => ({
    series,
    workers,
    speedup,
  }));
  const workers = [...new Set(points.map((point) => point.workers))].sort((a, b) => a - b);
  const ideal = workers.map((count): Datum => ({ workers: count, speedup: count }));
  const series = [...new Set(points.map((point) => point.series))];
  const top = Math.max(...points.map((point) => Math.max(point.speedup, point.workers)));
  const labels = lineLabels(
    endsOf(points.map((one) => ({ series: one.series, x: one.workers, y: one.speedup }))),
    { least: 0, most: top, log: false },
    width,
  );
  const color = {
    field: 'series',
    type: 'nominal',
    sort: series,
    ...(series.length > 1 && labels === undefined ? {} : { legend: null }),
  } as const;
  const x = {
    field: 'workers',
    type: 'quantitative',
    scale: { zero: false },
    axis: { title: 'workers', values: workers, format: 'd', grid: false },
  } as const;
  const y = {
    field: 'speedup',
    type: 'quantitative',
    axis: { title: 'speedup', tickCount: 6 },
  } as const;
  return {
    width,
    height: 280 + (labels === undefined ? legendHeight(series) : 0),
    autosize: { type: 'fit', contains: 'padding' },
    layer: [
      {
        data: { values: ideal },
        mark: { type: 'line', strokeDash: dashes, color: ink, opacity: 0.6 },
        encoding: { x, y },
      },
      {
        data: { values },
        mark: { type: 'line', strokeWidth: 2, point: { size: 36, filled: true } },
        encoding: { x, y, color },
      },
      ...labelLayers(labels, x, color),
    ],
  };
}

/** One chart of all cases with rates for several numbers of workers. */
export function speedupCharts(runs: readonly LabelledRun[]): Chart[] {
  const points = pointsOf(runs);
  if (points.length === 0) return [];
  return [
    {
      id: 'speedup',
      title: 'Speedup over workers',
      note: 'Dashed: the ideal. The smallest number of workers of each line is taken as ideal.',
      spec: (width) => speedupSpec(points, width),
      table: {
        columns: [
          { title: 'series', align: 'left' },
          { title: 'workers', align: 'right' },
          { title: 'in a second', align: 'right' },
          { title: 'speedup', align: 'right' },
          { title: 'efficiency', align: 'right' },
        ],
        rows: points.map(({ series, workers, throughput, unit, speedup }) => [
          series,
          String(workers),
          `${throughput.toPrecision(5)} ${unit}`,
          speedup.toFixed(2),
          percentText(speedup / workers),
        ]),
      },
    },
  ];
}
