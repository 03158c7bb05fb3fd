// Lines over a size: bandwidth with its limit, and time.
import type { Measurement } from '../../results/result.js';
import { bandwidthText, percentText, timeText } from '../../results/units.js';
import { groupBy, measuredEntries, numeric, seriesNames, slug, type Entry } from './series.js';
import { endsOf, labelLayers, lineLabels } from './line-labels.js';
import { dashes, legendHeight } from './theme.js';
import type { Chart, ChartTable, Datum, LabelledRun, VegaLiteSpec } from './types.js';

/** Parameters that change along a line. */
const ignored = ['bytes', 'bucketBytes', 'count', 'algorithm', 'protocol', 'flow'];

/** What a line may run over. */
const axes = [
  { parameter: 'bytes', title: 'size of one operation', slug: '' },
  { parameter: 'bucketBytes', title: 'size of a bucket', slug: '-bucket' },
] as const;

interface Point {
  readonly series: string;
  readonly size: number;
  readonly measurement: Measurement;
}

interface Sweep {
  readonly name: string;
  readonly axis: (typeof axes)[number];
  readonly points: readonly Point[];
}

/** `8 B`, `1 KiB`, `1.5 MiB`: sizes of sweeps are powers of two. */
export function binarySize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${String(Number(value.toPrecision(4)))} ${units[unit] ?? ''}`;
}

function sweepsOf(runs: readonly LabelledRun[]): Sweep[] {
  const entries = measuredEntries(runs).filter(
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

function pointsOf(entries: readonly Entry[], parameter: string): Point[] {
  const names = seriesNames(entries, ignored);
  return entries.map((entry) => ({
    series: names.get(entry) ?? entry.result.name,
    size: numeric(entry.result, parameter) ?? 0,
    measurement: entry.result,
  }));
}

/** The bus bandwidth that the limit of a measurement allows; null without one. */
export function limitBandwidth({ limit, busBandwidth }: Measurement): number | null {
  if (limit === null || limit.ratio <= 0 || busBandwidth.bytesPerSecond <= 0) return null;
  return busBandwidth.bytesPerSecond / limit.ratio;
}

/** Few enough of the sizes that their labels do not touch. */
function ticks(points: readonly Point[], width: number): number[] {
  const sizes = [...new Set(points.map(({ size }) => size))].sort((a, b) => a - b);
  const room = Math.max(2, Math.floor((width - 80) / 64));
  const step = Math.ceil(sizes.length / room);
  return sizes.filter((_, index) => (sizes.length - 1 - index) % step === 0);
}

const sizeLabels =
  "datum.value < 1024 ? datum.value + ' B' : datum.value < 1048576 ? format(datum.value / 1024, '~r') + ' KiB' : " +
  "datum.value < 1073741824 ? format(datum.value / 1048576, '.4~r') + ' MiB' : format(datum.value / 1073741824, '.4~r') + ' GiB'";

function sizeAxis(sweep: Sweep, width: number) {
  return {
    field: 'size',
    type: 'quantitative',
    scale: { type: 'log', base: 2, nice: false },
    axis: {
      title: sweep.axis.title,
      values: ticks(sweep.points, width),
      labelExpr: sizeLabels,
      grid: false,
    },
  } as const;
}

/** Of seconds. */
const timeLabels =
  "datum.value >= 1 ? format(datum.value, '~r') + ' s' : datum.value >= 0.001 ? format(datum.value * 1000, '.3~r') + ' ms' : " +
  "format(datum.value * 1000000, '.3~r') + ' µs'";

/** One line needs no legend, and lines with labels of their own need none. */
function colours(points: readonly Point[], labels: readonly Datum[] | undefined) {
  const series = [...new Set(points.map((point) => point.series))];
  return {
    field: 'series',
    type: 'nominal',
    sort: series,
    ...(series.length > 1 && labels === undefined ? {} : { legend: null }),
  } as const;
}

function bandwidthSpec(sweep: Sweep, width: number): VegaLiteSpec {
  const values = sweep.points.map(({ series, size, measurement }): Datum => {
    const { bytesPerSecond, lowerBytesPerSecond, upperBytesPerSecond } = measurement.busBandwidth;
    const limit = limitBandwidth(measurement);
    return {
      series,
      size,
      gigabytes: bytesPerSecond / 1e9,
      lower: lowerBytesPerSecond / 1e9,
      upper: upperBytesPerSecond / 1e9,
      limit: limit === null ? null : limit / 1e9,
    };
  });
  const top = Math.max(...values.map(({ upper, limit }) => Math.max(Number(upper), Number(limit))));
  const labels = lineLabels(
    endsOf(
      sweep.points.map(({ series, size, measurement }) => ({
        series,
        x: size,
        y: measurement.busBandwidth.bytesPerSecond / 1e9,
      })),
    ),
    { least: 0, most: top, log: false },
    width,
  );
  const x = sizeAxis(sweep, width);
  const color = colours(sweep.points, labels);
  const series = sweep.points.map((point) => point.series);
  return {
    width,
    height: 260 + (labels === undefined ? legendHeight(series) : 0),
    autosize: { type: 'fit', contains: 'padding' },
    data: { values },
    layer: [
      {
        transform: [{ filter: 'isValid(datum.limit)' }],
        mark: { type: 'line', strokeDash: dashes, strokeWidth: 1.5, opacity: 0.75 },
        encoding: { x, y: { field: 'limit', type: 'quantitative' }, color },
      },
      {
        mark: { type: 'rule', strokeWidth: 2, opacity: 0.5 },
        encoding: {
          x,
          y: { field: 'lower', type: 'quantitative' },
          y2: { field: 'upper' },
          color,
        },
      },
      {
        mark: { type: 'line', strokeWidth: 2, point: { size: 28, filled: true } },
        encoding: {
          x,
          y: {
            field: 'gigabytes',
            type: 'quantitative',
            scale: { zero: true },
            axis: { title: 'bus bandwidth, GB/s', tickCount: 6 },
          },
          color,
        },
      },
      ...labelLayers(labels, x, color),
    ],
  };
}

function timeSpec(sweep: Sweep, width: number): VegaLiteSpec {
  const values = sweep.points
    .filter(({ measurement }) => measurement.statistics.medianSeconds > 0)
    .map(({ series, size, measurement }): Datum => {
      const { medianSeconds, p95Seconds } = measurement.statistics;
      return { series, size, median: medianSeconds, p95: p95Seconds };
    });
  const times = values.flatMap(({ median, p95 }) => [Number(median), Number(p95)]);
  const labels = lineLabels(
    endsOf(
      values.map((one) => ({
        series: String(one.series),
        x: Number(one.size),
        y: Number(one.median),
      })),
    ),
    { least: Math.min(...times), most: Math.max(...times), log: true },
    width,
  );
  const x = sizeAxis(sweep, width);
  const color = colours(sweep.points, labels);
  const series = sweep.points.map((point) => point.series);
  return {
    width,
    height: 260 + (labels === undefined ? legendHeight(series) : 0),
    autosize: { type: 'fit', contains: 'padding' },
    data: { values },
    layer: [
      {
        mark: { type: 'rule', strokeWidth: 2, opacity: 0.5 },
        encoding: { x, y: { field: 'median', type: 'quantitative' }, y2: { field: 'p95' }, color },
      },
      {
        mark: { type: 'line', strokeWidth: 2, point: { size: 28, filled: true } },
        encoding: {
          x,
          y: {
            field: 'median',
            type: 'quantitative',
            scale: { type: 'log' },
            axis: { title: 'median time', tickCount: 5, labelExpr: timeLabels },
          },
          color,
        },
      },
      ...labelLayers(labels, x, color),
    ],
  };
}

function tableOf(sweep: Sweep): ChartTable {
  return {
    columns: [
      { title: 'series', align: 'left' },
      { title: 'size', align: 'right' },
      { title: 'median', align: 'right' },
      { title: 'p95', align: 'right' },
      { title: 'bus bandwidth', align: 'right' },
      { title: 'limit', align: 'right' },
      { title: 'of limit', align: 'right' },
    ],
    rows: sweep.points.map(({ series, size, measurement }) => {
      const limit = limitBandwidth(measurement);
      return [
        series,
        binarySize(size),
        timeText(measurement.statistics.medianSeconds),
        timeText(measurement.statistics.p95Seconds),
        bandwidthText(measurement.busBandwidth.bytesPerSecond),
        limit === null ? '' : bandwidthText(limit),
        measurement.limit === null ? '' : percentText(measurement.limit.ratio),
      ];
    }),
  };
}

/** Two charts for each case name that was measured at several sizes; of buckets the time alone. */
export function sweepCharts(runs: readonly LabelledRun[]): Chart[] {
  return sweepsOf(runs).flatMap((sweep) => {
    const id = `${slug(sweep.name)}${sweep.axis.slug}`;
    const table = tableOf(sweep);
    const over = sweep.axis.parameter === 'bytes' ? 'size' : 'bucket size';
    const limited = sweep.points.some(({ measurement }) => limitBandwidth(measurement) !== null);
    const bandwidth: Chart = {
      id: `bandwidth-${id}`,
      title: `${sweep.name}: bandwidth over ${over}`,
      note: `Bars are the interval of the median.${limited ? ' Dashed: what caches, memory or links allow at that size.' : ''}`,
      spec: (width) => bandwidthSpec(sweep, width),
      table,
    };
    const time: Chart = {
      id: `time-${id}`,
      title: `${sweep.name}: time over ${over}`,
      note: 'From the median, a bar up to the 95th percentile. Both axes are logarithmic.',
      spec: (width) => timeSpec(sweep, width),
      table,
    };
    return sweep.axis.parameter === 'bytes' ? [bandwidth, time] : [time];
  });
}
