// Lines over a size: bandwidth with its limit, and time.
import type { Measurement } from '../../results/result.js';
import { bandwidthText, percentText, sizeText, timeText } from '../../results/units.js';
import { groupBy, measuredEntries, numeric, seriesNames, slug, type Entry } from './series.js';
import { sizeAxis, timeAxis, timeScale } from './axes.js';
import { limitBandwidth, limitPoints, type LimitPoint } from './limits.js';
import { endsOf, labelLayers, labelsWidth, lineLabels, type LineEnd } from './line-labels.js';
import { dashes, ink, legendHeight } from './theme.js';
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

/** Of the plot: the colours of lines are told by labels at their ends, or by a legend. */
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

/** More limits than this have the colours of their lines alone: their labels would crowd out the others. */
const mostLimitLabels = 2;

function limitEnds(points: readonly LimitPoint[]): LineEnd[] {
  const ends = endsOf(
    points.map(({ series, size, limit }) => ({ series, x: size, y: limit, isLimit: true })),
  );
  return ends.length > mostLimitLabels ? [] : ends;
}

function bandwidthSpec(sweep: Sweep, width: number): VegaLiteSpec {
  const values = sweep.points.map(({ series, size, measurement }): Datum => {
    const { bytesPerSecond, lowerBytesPerSecond, upperBytesPerSecond } = measurement.busBandwidth;
    return {
      series,
      size,
      gigabytes: bytesPerSecond / 1e9,
      lower: lowerBytesPerSecond / 1e9,
      upper: upperBytesPerSecond / 1e9,
    };
  });
  const limits = limitPoints(sweep.points);
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
  const values = sweep.points
    .filter(({ measurement }) => measurement.statistics.medianSeconds > 0)
    .map(({ series, size, measurement }): Datum => {
      const { medianSeconds, p95Seconds } = measurement.statistics;
      return { series, size, median: medianSeconds, p95: p95Seconds };
    });
  const scale = timeScale(values.flatMap(({ median, p95 }) => [Number(median), Number(p95)]));
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
      {
        mark: { type: 'rule', strokeWidth: 2, opacity: 0.5 },
        encoding: { x, y: { field: 'median', type: 'quantitative' }, y2: { field: 'p95' }, color },
      },
      {
        mark: { type: 'line', strokeWidth: 2, point: { size: 28, filled: true } },
        encoding: { x, y: { field: 'median', type: 'quantitative', ...time }, color },
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
        sizeText(size),
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
    const limited = limitPoints(sweep.points).points.length > 0;
    const bandwidth: Chart = {
      id: `bandwidth-${id}`,
      title: `${sweep.name}: bandwidth over ${over}`,
      note: `Bars are the interval of the median.${limited ? ' Dashed: the limit, what caches, memory or links allow at that size, where it was measured for it.' : ''}`,
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
