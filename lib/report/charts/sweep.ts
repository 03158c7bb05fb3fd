// Lines over size: bandwidth with its limit, and time.
import type { Measurement } from '../../results/result.js';
import { rangeText, spreadBy, spreadOf } from '../repeats.js';
import { bandwidthText, percentText, sizeText, timeText } from '../../results/units.js';
import { numeric, repeatedEntries, seriesNames, slug, type RepeatedEntry } from './series.js';
import { sizeAxis, timeAxis, timeScale } from './axes.js';
import { limitBandwidth, limitPoints, type LimitPoint } from './limits.js';
import { endsOf, labelLayers, labelsWidth, lineLabels, type LineEnd } from './line-labels.js';
import { dashes, ink, legendHeight } from './theme.js';
import type { Chart, ChartTable, Datum, LabelledRun, VegaLiteSpec } from './types.js';
import { groupBy } from '../../results/grouping.js';

/** Parameters that vary along a line. */
const ignored = ['bytes', 'bucketBytes', 'count', 'flow'];

/** Possible horizontal axes. */
const axes = [
  { parameter: 'bytes', title: 'size of one operation', slug: '' },
  { parameter: 'bucketBytes', title: 'size of a bucket', slug: '-bucket' },
] as const;

interface Point {
  readonly series: string;
  readonly size: number;
  /** Medians of the repeats. */
  readonly measurement: Measurement;
  readonly repeats: readonly Measurement[];
}

interface Sweep {
  readonly name: string;
  readonly axis: (typeof axes)[number];
  readonly points: readonly Point[];
}

function sweepsOf(runs: readonly LabelledRun[]): Sweep[] {
  const entries = repeatedEntries(runs).filter(
    ({ result }) => typeof result.parameters.from !== 'string',
  );
  return axes.flatMap((axis) => {
    const sized = entries.filter(({ result }) => (numeric(result, axis.parameter) ?? 0) > 0);
    return [...groupBy(sized, ({ result }) => result.name)].flatMap(([name, group]) => {
      const points = pointsOf(group, axis.parameter);
      const lengths = [...groupBy(points, ({ series }) => series).values()].map(
        (line) => new Set(line.map(({ size }) => size)).size,
      );
      return Math.max(0, ...lengths) > 1 ? [{ name, axis, points }] : [];
    });
  });
}

function pointsOf(entries: readonly RepeatedEntry[], parameter: string): Point[] {
  const names = seriesNames(entries, { ignored });
  return entries.map((entry) => ({
    series: names.get(entry) ?? entry.result.name,
    size: numeric(entry.result, parameter) ?? 0,
    measurement: entry.result,
    repeats: entry.repeats,
  }));
}

/** A single line, or lines with labels, need no legend. */
function colours(points: readonly Point[], labels: readonly Datum[] | undefined) {
  const series = [...new Set(points.map((point) => point.series))];
  return {
    field: 'series',
    type: 'nominal',
    sort: series,
    ...(series.length > 1 && labels === undefined ? {} : { legend: null }),
  } as const;
}

/** Line colours are explained by labels at their ends or by a legend. */
function frame(sweep: Sweep, width: number, labels: readonly Datum[] | undefined) {
  const series = sweep.points.map((point) => point.series);
  return {
    width,
    height: 260 + (labels === undefined ? legendHeight(series) : 0),
    autosize: { type: 'fit', contains: 'padding' },
  } as const;
}

function sizesOf(sweep: Sweep, width: number, labels: readonly Datum[] | undefined) {
  return sizeAxis(
    sweep.axis.title,
    sweep.points.map(({ size }) => size),
    width - labelsWidth(labels),
  );
}

/** With more limits than this only colours identify them: labels would crowd out the others. */
const mostLimitLabels = 2;

function limitEnds(points: readonly LimitPoint[]): LineEnd[] {
  const ends = endsOf(
    points.map(({ series, size, limit }) => ({ series, x: size, y: limit, isLimit: true })),
  );
  return ends.length > mostLimitLabels ? [] : ends;
}

/** Every repeat of the points. */
function measurementsOf({ points }: Sweep) {
  return points.flatMap(({ series, size, repeats }) =>
    repeats.map((measurement) => ({ series, size, measurement })),
  );
}

/** Series with repeats, whose scatter is drawn as a band. */
function bandedSeries(points: readonly Point[]): ReadonlySet<string> {
  return new Set(points.filter(({ repeats }) => repeats.length > 1).map(({ series }) => series));
}

/** A band with repeats, otherwise a bar at each point. */
function scatterLayers(
  values: readonly Datum[],
  banded: ReadonlySet<string>,
  [low, high]: readonly [low: string, high: string],
  { x, color }: { readonly x: object; readonly color: object },
) {
  const place = { x, y: { field: low, type: 'quantitative' }, y2: { field: high }, color } as const;
  const [bands, bars] = [true, false].map((isBand) =>
    values.filter(({ series }) => banded.has(String(series)) === isBand),
  );
  return [
    {
      data: { values: bands! },
      mark: { type: 'area', opacity: 0.22 },
      encoding: place,
    },
    {
      data: { values: bars! },
      mark: { type: 'rule', strokeWidth: 2, opacity: 0.5 },
      encoding: place,
    },
  ] as const;
}

function bandwidthSpec(sweep: Sweep, width: number): VegaLiteSpec {
  const banded = bandedSeries(sweep.points);
  const values = sweep.points.map(({ series, size, measurement, repeats }): Datum => {
    const { bytesPerSecond, lowerBytesPerSecond, upperBytesPerSecond } = measurement.busBandwidth;
    const { least, most } = spreadOf(repeats.map((one) => one.busBandwidth.bytesPerSecond));
    return {
      series,
      size,
      gigabytes: bytesPerSecond / 1e9,
      lower: (banded.has(series) ? least : lowerBytesPerSecond) / 1e9,
      upper: (banded.has(series) ? most : upperBytesPerSecond) / 1e9,
    };
  });
  const limits = limitPoints(measurementsOf(sweep));
  const top = Math.max(
    ...values.map(({ upper }) => Number(upper)),
    ...limits.points.map(({ limit }) => limit),
  );
  const labels = lineLabels(
    [
      ...endsOf(
        values.map(({ series, size, gigabytes }) => ({
          series: String(series),
          x: Number(size),
          y: Number(gigabytes),
        })),
      ),
      ...limitEnds(limits.points),
    ],
    { least: 0, most: top, log: false },
    width,
  );
  const x = sizesOf(sweep, width, labels);
  const color = colours(sweep.points, labels);
  const limitLine = { type: 'line', strokeDash: dashes, strokeWidth: 1.5, opacity: 0.75 } as const;
  const limitPlace = { x, y: { field: 'limit', type: 'quantitative' } } as const;
  return {
    ...frame(sweep, width, labels),
    data: { values },
    layer: [
      {
        data: { values: limits.points.map((point): Datum => ({ ...point })) },
        mark: limits.shared ? { ...limitLine, color: ink } : limitLine,
        encoding: limits.shared ? limitPlace : { ...limitPlace, color },
      },
      ...scatterLayers(values, banded, ['lower', 'upper'], { x, color }),
      {
        mark: { type: 'line', strokeWidth: 2, point: { size: 28, filled: true } },
        encoding: {
          x,
          y: {
            field: 'gigabytes',
            type: 'quantitative',
            scale: { domain: [0, top], nice: true },
            axis: { title: 'bus bandwidth, GB/s', tickCount: 6 },
          },
          color,
        },
      },
      ...labelLayers(labels, x, color, limits.shared),
    ],
  };
}

function timeSpec(sweep: Sweep, width: number): VegaLiteSpec {
  const banded = bandedSeries(sweep.points);
  const values = sweep.points
    .filter(({ repeats }) => repeats.every(({ statistics }) => statistics.medianSeconds > 0))
    .map(({ series, size, measurement, repeats }): Datum => {
      const { medianSeconds, p95Seconds } = measurement.statistics;
      const { least, most } = spreadOf(repeats.map(({ statistics }) => statistics.medianSeconds));
      return {
        series,
        size,
        median: medianSeconds,
        lower: banded.has(series) ? least : medianSeconds,
        upper: banded.has(series) ? most : p95Seconds,
      };
    });
  const scale = timeScale(values.flatMap(({ lower, upper }) => [Number(lower), Number(upper)]));
  const labels = lineLabels(
    endsOf(
      values.map((one) => ({
        series: String(one.series),
        x: Number(one.size),
        y: Number(one.median),
      })),
    ),
    { ...scale, log: true },
    width,
  );
  const x = sizesOf(sweep, width, labels);
  const color = colours(sweep.points, labels);
  const time = timeAxis(scale);
  return {
    ...frame(sweep, width, labels),
    data: { values },
    layer: [
      ...scatterLayers(values, banded, ['lower', 'upper'], { x, color }),
      {
        mark: { type: 'line', strokeWidth: 2, point: { size: 28, filled: true } },
        encoding: { x, y: { field: 'median', type: 'quantitative', ...time }, color },
      },
      ...labelLayers(labels, x, color),
    ],
  };
}

function tableOf(sweep: Sweep): ChartTable {
  const repeated = bandedSeries(sweep.points).size > 0;
  return {
    columns: [
      { title: 'series', align: 'left' },
      { title: 'size', align: 'right' },
      ...(repeated ? [{ title: 'runs', align: 'right' } as const] : []),
      { title: 'median', align: 'right' },
      { title: 'p95', align: 'right' },
      { title: 'bus bandwidth', align: 'right' },
      ...(repeated ? [{ title: 'range', align: 'right' } as const] : []),
      { title: 'limit', align: 'right' },
      { title: 'of limit', align: 'right' },
    ],
    rows: sweep.points.map(({ series, size, measurement, repeats }) => {
      const limit = spreadBy(repeats, limitBandwidth)?.median ?? null;
      const range = spreadOf(repeats.map((one) => one.busBandwidth.bytesPerSecond));
      return [
        series,
        sizeText(size),
        ...(repeated ? [String(repeats.length)] : []),
        timeText(measurement.statistics.medianSeconds),
        timeText(measurement.statistics.p95Seconds),
        bandwidthText(measurement.busBandwidth.bytesPerSecond),
        ...(repeated ? [rangeText(range, bandwidthText)] : []),
        limit === null ? '' : bandwidthText(limit),
        measurement.limit === null ? '' : percentText(measurement.limit.ratio),
      ];
    }),
  };
}

/** The description of a line's scatter. */
function scatterNote({ points }: Sweep, bars: string): string {
  const banded = bandedSeries(points);
  const runs = points.map(({ repeats }) => repeats.length);
  const most = Math.max(...runs);
  const count = runs.every((one) => one === most) ? String(most) : `up to ${String(most)}`;
  const band = `Lines are medians of ${count} runs, bands their ranges.`;
  if (banded.size === 0) return bars;
  return points.every(({ series }) => banded.has(series)) ? band : `${band} ${bars}`;
}

/** Two charts for each case name with several sizes; for bucket sizes only time. */
export function sweepCharts(runs: readonly LabelledRun[]): Chart[] {
  return sweepsOf(runs).flatMap((sweep) => {
    const id = `${slug(sweep.name)}${sweep.axis.slug}`;
    const table = tableOf(sweep);
    const over = sweep.axis.parameter === 'bytes' ? 'size' : 'bucket size';
    const limited = limitPoints(measurementsOf(sweep)).points.length > 0;
    const bandwidth: Chart = {
      id: `bandwidth-${id}`,
      title: `${sweep.name}: bandwidth over ${over}`,
      note: `${scatterNote(sweep, 'Bars are the interval of the median.')}${limited ? ' Dashed: the limit, what caches, memory or links allow at that size, where it was measured for it.' : ''}`,
      spec: (width) => bandwidthSpec(sweep, width),
      table,
    };
    const time: Chart = {
      id: `time-${id}`,
      title: `${sweep.name}: time over ${over}`,
      note: `${scatterNote(sweep, 'From the median, a bar up to the 95th percentile.')} Both axes are logarithmic.`,
      spec: (width) => timeSpec(sweep, width),
      table,
    };
    return sweep.axis.parameter === 'bytes' ? [bandwidth, time] : [time];
  });
}
