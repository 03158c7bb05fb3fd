// Strip plots: every timed sample of the cases that are not points of a sweep.
import { timeText } from '../../results/units.js';
import { measuredEntries, numeric, seriesNames, wrapped, type Entry } from './series.js';
import { ink, palette } from './theme.js';
import type { Chart, Datum, LabelledRun, VegaLiteSpec } from './types.js';

/** Strips of one chart, and ticks of one strip: more cannot be told apart. */
const mostStrips = 16;
const mostTicks = 400;

interface Strip {
  readonly name: string;
  readonly entry: Entry;
}

/** All when they are few; else so many of them, evenly spread over the run. */
function thinned(samples: readonly number[]): number[] {
  if (samples.length <= mostTicks) return [...samples];
  return Array.from(
    { length: mostTicks },
    (_, index) => samples[Math.floor((index * samples.length) / mostTicks)] ?? 0,
  );
}

function unitOf(strips: readonly Strip[]): { readonly name: string; readonly scale: number } {
  const most = Math.max(...strips.map(({ entry }) => entry.result.statistics.maxSeconds));
  if (most >= 1) return { name: 's', scale: 1 };
  return most >= 1e-3 ? { name: 'ms', scale: 1e3 } : { name: 'us', scale: 1e6 };
}

function stripSpec(strips: readonly Strip[], width: number): VegaLiteSpec {
  const unit = unitOf(strips);
  const names = strips.map(({ name }) => name);
  const letters = Math.floor((width - 20) / 7);
  const labels = strips.map(({ name, entry }): Datum => ({
    name,
    label: wrapped(name, letters),
    median: entry.result.statistics.medianSeconds * unit.scale,
  }));
  const ticks = strips.flatMap(({ name, entry }) =>
    thinned(entry.result.samplesSeconds).map((seconds): Datum => ({
      name,
      time: seconds * unit.scale,
    })),
  );
  // An axis needs a length where all samples are equal, as on stand-ins.
  const times = ticks.map(({ time }) => Number(time));
  const most = Math.max(...times);
  const same = Math.min(...times) === most;
  const lines = Math.max(...names.map((name) => wrapped(name, letters).length));
  const step = 34 + lines * 15;
  const y = { field: 'name', type: 'nominal', sort: names, axis: null } as const;
  return {
    width,
    height: step * strips.length + 45,
    autosize: { type: 'fit', contains: 'padding' },
    layer: [
      {
        data: { values: ticks },
        mark: { type: 'tick', size: 18, thickness: 1.5, opacity: 0.55, color: palette[0] },
        encoding: {
          x: {
            field: 'time',
            type: 'quantitative',
            scale: { zero: false, ...(same ? { domain: [most * 0.9, most * 1.1] } : {}) },
            axis: { title: `time of a sample, ${unit.name}`, tickCount: width < 500 ? 4 : 8 },
          },
          y,
        },
      },
      {
        data: { values: labels },
        mark: { type: 'tick', size: 26, thickness: 3, color: palette[1] },
        encoding: { x: { field: 'median', type: 'quantitative' }, y },
      },
      {
        data: { values: labels },
        mark: {
          type: 'text',
          align: 'left',
          baseline: 'bottom',
          dy: -14 - (lines - 1) * 14,
          lineHeight: 14,
          color: ink,
        },
        encoding: { x: { value: 0 }, y, text: { field: 'label' } },
      },
    ],
  };
}

/** Cases whose size is one of several belong to a sweep's lines. */
function isPoint({ result }: Entry): boolean {
  const { bytes, bucketBytes, from } = result.parameters;
  return typeof bytes === 'number' || typeof bucketBytes === 'number' || typeof from === 'string';
}

function titleOf(chosen: readonly Entry[], all: boolean): string {
  if (all) return 'Every sample';
  const bucketed = chosen.some(({ result }) => typeof result.parameters.bucketBytes === 'number');
  return `Every sample at the largest ${bucketed ? 'bucket' : 'size'}`;
}

/** Those of the largest size of a sweep; of several sizes of buckets the largest of these. */
function ofLargest(entries: readonly Entry[]): Entry[] {
  const largest = Math.max(...entries.map(({ result }) => result.bytes));
  const atSize = entries.filter(({ result }) => result.bytes === largest);
  const bucket = ({ result }: Entry): number => numeric(result, 'bucketBytes') ?? 0;
  const most = Math.max(...atSize.map(bucket));
  return atSize.filter((entry) => bucket(entry) === most);
}

/** The samples of all cases but those of sweeps and matrices; where there are none such, of the largest size. */
export function sampleCharts(runs: readonly LabelledRun[]): Chart[] {
  const entries = measuredEntries(runs);
  const single = entries.filter((entry) => !isPoint(entry));
  const swept = entries.filter(({ result }) => typeof result.parameters.from !== 'string');
  const chosen = (single.length > 0 ? single : ofLargest(swept)).slice(0, mostStrips);
  if (chosen.length === 0) return [];
  const names = seriesNames(chosen, ['flow']);
  const strips = chosen.map((entry) => ({ name: names.get(entry) ?? entry.result.name, entry }));
  // Strips of one name would lie on each other.
  const unique = strips.map(({ name, entry }, index) =>
    strips.findIndex((other) => other.name === name) === index
      ? { name, entry }
      : { name: `${name} (${String(index + 1)})`, entry },
  );
  const thin = chosen.some(({ result }) => result.samplesSeconds.length > mostTicks);
  return [
    {
      id: 'samples',
      title: titleOf(chosen, single.length > 0),
      note: `A thin tick is a sample, the thick one the median.${thin ? ` At most ${String(mostTicks)} samples are drawn, evenly spread.` : ''}`,
      spec: (width) => stripSpec(unique, width),
      table: {
        columns: [
          { title: 'case', align: 'left' },
          { title: 'samples', align: 'right' },
          { title: 'min', align: 'right' },
          { title: 'median', align: 'right' },
          { title: 'p95', align: 'right' },
          { title: 'max', align: 'right' },
        ],
        rows: unique.map(({ name, entry }) => {
          const { statistics } = entry.result;
          return [
            name,
            String(statistics.samples),
            timeText(statistics.minSeconds),
            timeText(statistics.medianSeconds),
            timeText(statistics.p95Seconds),
            timeText(statistics.maxSeconds),
          ];
        }),
      },
    },
  ];
}
