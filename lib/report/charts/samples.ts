// Strip plots: every timed sample of cases outside of sweeps.
import { identityOf } from '../../results/repeats.js';
import { timeText } from '../../results/units.js';
import { measuredEntries, numeric, seriesNames, wrapped, type Entry } from './series.js';
import { ink, palette } from './theme.js';
import type { Chart, Datum, LabelledRun, VegaLiteSpec } from './types.js';
import { groupBy } from '../../results/grouping.js';

/** Maximum strips per chart, and ticks per strip: more are indistinguishable. */
const mostStrips = 16;
const mostTicks = 400;

interface Strip {
  readonly name: string;
  readonly entry: Entry;
}

/** All samples, or this many spread evenly over the run. */
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
  // An axis needs a length even if all samples are equal, as in tests.
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

/** Cases with one of several sizes belong to a sweep's lines. */
function isPoint({ result }: Entry): boolean {
  const { bytes, bucketBytes, from } = result.parameters;
  return typeof bytes === 'number' || typeof bucketBytes === 'number' || typeof from === 'string';
}

function titleOf(chosen: readonly Entry[], all: boolean): string {
  if (all) return 'Samples';
  const bucketed = chosen.some(({ result }) => typeof result.parameters.bucketBytes === 'number');
  return `Samples at the largest ${bucketed ? 'bucket' : 'size'}`;
}

/** Of each run the largest size of a sweep, and of bucket sizes. */
function ofLargest(entries: readonly Entry[]): Entry[] {
  return [...groupBy(entries, ({ run }) => run.label).values()].flatMap(ofLargestInRun);
}

function ofLargestInRun(entries: readonly Entry[]): Entry[] {
  const largest = Math.max(...entries.map(({ result }) => result.bytes));
  const atSize = entries.filter(({ result }) => result.bytes === largest);
  const bucket = ({ result }: Entry): number => numeric(result, 'bucketBytes') ?? 0;
  const most = Math.max(...atSize.map(bucket));
  return atSize.filter((entry) => bucket(entry) === most);
}

/** The number of an entry among its repeats in its run, from 1; absent if it is the only one. */
function cyclesOf(entries: readonly Entry[]): Map<Entry, number> {
  const repeats = groupBy(entries, ({ run, result }) =>
    JSON.stringify([run.label, identityOf(result)]),
  );
  return new Map(
    [...repeats.values()]
      .filter(({ length }) => length > 1)
      .flatMap((like) => like.map((entry, index): [Entry, number] => [entry, index + 1])),
  );
}

/** This many entries in order: the first cycles of all runs and cases come first. */
function drawn(entries: readonly Entry[], cycles: ReadonlyMap<Entry, number>): Entry[] {
  const turns = [...groupBy(entries, ({ run }) => run.label).values()].flatMap((own) => {
    const cases = new Map<string, number>();
    return own.map((entry) => {
      const identity = identityOf(entry.result);
      const place = cases.get(identity) ?? cases.size;
      cases.set(identity, place);
      return { entry, turn: [cycles.get(entry) ?? 1, place] as const };
    });
  });
  const first = turns
    .toSorted((a, b) => a.turn[0] - b.turn[0] || a.turn[1] - b.turn[1])
    .slice(0, mostStrips);
  const kept = new Set(first.map(({ entry }) => entry));
  return entries.filter((entry) => kept.has(entry));
}

/** The strips of these entries, named by their differences, with the cycle at the end. */
function stripsOf(entries: readonly Entry[], cycles: ReadonlyMap<Entry, number>): Strip[] {
  const names = seriesNames(entries, { ignored: ['flow'], runOf: ({ label }) => label });
  return entries.map((entry) => {
    const name = names.get(entry) ?? entry.result.name;
    const cycle = cycles.get(entry);
    return { name: cycle === undefined ? name : `${name}, cycle ${String(cycle)}`, entry };
  });
}

/** How many of the samples are shown. */
function drawnNote(strips: readonly Strip[], all: number): string {
  const samples = strips.map(({ entry }) => entry.result.samplesSeconds.length);
  const total = samples.reduce((sum, count) => sum + count, 0);
  const seen = samples.reduce((sum, count) => sum + Math.min(count, mostTicks), 0);
  return [
    ...(strips.length < all ? [` ${String(strips.length)} of ${String(all)} drawn.`] : []),
    ...(seen < total
      ? [` ${String(seen)} of their ${String(total)} samples are drawn, evenly spread.`]
      : []),
  ].join('');
}

/** The samples of all cases but those of sweeps and matrices; if there are none, of the largest size. */
export function sampleCharts(runs: readonly LabelledRun[]): Chart[] {
  const entries = measuredEntries(runs);
  const single = entries.filter((entry) => !isPoint(entry));
  const swept = entries.filter(({ result }) => typeof result.parameters.from !== 'string');
  const chosen = single.length > 0 ? single : ofLargest(swept);
  if (chosen.length === 0) return [];
  const cycles = cyclesOf(chosen);
  const all = stripsOf(chosen, cycles);
  const kept = new Set(drawn(chosen, cycles));
  const strips = all.filter(({ entry }) => kept.has(entry));
  return [
    {
      id: 'samples',
      title: titleOf(chosen, single.length > 0),
      note: `A thin tick is a sample, the thick one the median.${drawnNote(strips, all.length)}`,
      spec: (width) => stripSpec(strips, width),
      table: {
        columns: [
          { title: 'case', align: 'left' },
          { title: 'samples', align: 'right' },
          { title: 'min', align: 'right' },
          { title: 'median', align: 'right' },
          { title: 'p95', align: 'right' },
          { title: 'max', align: 'right' },
        ],
        rows: all.map(({ name, entry }) => {
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
