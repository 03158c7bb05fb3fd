// Grouped horizontal bars: the parts of a step, and each server's traffic.
import { percentText, sizeText, timeText } from '../../results/units.js';
import { repeatedEntries, seriesNames, wrapped, type Entry } from './series.js';
import { fontSize } from './theme.js';
import type { Chart, Datum, LabelledRun, VegaLiteSpec } from './types.js';

interface Bar {
  /** The case of the bar. */
  readonly group: string;
  readonly name: string;
  readonly value: number;
  readonly text: string;
}

const barStep = 22;
const lineStep = 16;

/** Groups below each other: a heading, then one bar per line with its figure at the end. */
function barSpec(bars: readonly Bar[], title: string, width: number): VegaLiteSpec {
  const letters = Math.floor((width - 20) / 7);
  const names = [...new Set(bars.map(({ name }) => name))];
  const rows: Datum[] = [];
  const headings: Datum[] = [];
  let top = lineStep + 8;
  for (const group of new Set(bars.map((bar) => bar.group))) {
    const label = wrapped(group, letters);
    headings.push({ top, label });
    top += label.length * lineStep + 4;
    for (const bar of bars.filter((one) => one.group === group)) {
      rows.push({ top: top + 3, end: top + barStep - 3, middle: top + barStep / 2, ...bar });
      top += barStep;
    }
    top += 12;
  }
  const longest = (texts: readonly string[]): number =>
    Math.max(...texts.map((text) => text.length)) * fontSize * 0.58;
  const left = longest(bars.map(({ name }) => name)) + 10;
  const right = longest(bars.map(({ text }) => text)) + 14;
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const vertical = (field: string) => ({
    field,
    type: 'quantitative' as const,
    scale: { domain: [0, top], range: [0, top], nice: false, zero: false },
    axis: null,
  });
  const x = {
    field: 'value',
    type: 'quantitative' as const,
    scale: { domain: [0, most], range: [left, Math.max(left + 40, width - right)], nice: false },
    axis: null,
  };
  return {
    width: width - 8,
    height: top,
    // Vega overestimates the width of text and would reserve too much space.
    autosize: 'none',
    padding: 4,
    data: { values: rows },
    layer: [
      {
        mark: { type: 'bar' },
        encoding: {
          x,
          x2: { datum: 0 },
          y: vertical('top'),
          y2: { field: 'end' },
          color: { field: 'name', type: 'nominal', sort: names, legend: null },
        },
      },
      {
        mark: { type: 'text', align: 'left', baseline: 'middle', dx: 6 },
        encoding: { x, y: vertical('middle'), text: { field: 'text' } },
      },
      {
        mark: { type: 'text', align: 'right', baseline: 'middle', x: left - 6 },
        encoding: { y: vertical('middle'), text: { field: 'name' } },
      },
      {
        data: { values: [{ title }] },
        mark: { type: 'text', align: 'left', baseline: 'top', x: 0, y: 0 },
        encoding: { text: { field: 'title' } },
      },
      {
        data: { values: headings },
        mark: { type: 'text', align: 'left', baseline: 'top', x: 0, fontWeight: 'bold' },
        encoding: { y: vertical('top'), text: { field: 'label' } },
      },
    ],
  };
}

function chartOf(
  head: Pick<Chart, 'id' | 'title' | 'note'>,
  bars: readonly Bar[],
  unit: string,
): Chart {
  return {
    ...head,
    spec: (width) => barSpec(bars, unit, width),
    table: {
      columns: [
        { title: 'case', align: 'left' },
        { title: 'part', align: 'left' },
        { title: unit, align: 'right' },
      ],
      rows: bars.map(({ group, name, text }) => [group, name, text]),
    },
  };
}

/** The figures of a case that are parts of its step, in order. */
const parts = [
  'dataSeconds',
  'forwardSeconds',
  'backwardSeconds',
  'computeSeconds',
  'copySeconds',
  'communicationSeconds',
  'exposedSeconds',
  'waitSeconds',
  'updateSeconds',
] as const;

function partBars(entry: Entry, group: string): Bar[] {
  const { values, statistics } = entry.result;
  return parts.flatMap((part) => {
    const value = values?.[part];
    if (value === undefined || value === null) return [];
    const share = statistics.medianSeconds > 0 ? value / statistics.medianSeconds : 0;
    const name = part === 'exposedSeconds' ? 'not hidden' : part.replace('Seconds', '');
    // The difference of two times can be negative.
    if (share < 0) return [{ group, name, value: 0, text: 'nothing' }];
    return [{ group, name, value: share, text: `${percentText(share)}, ${timeText(value)}` }];
  });
}

function shareBars(entry: Entry, group: string): Bar[] {
  const shares = entry.result.traffic?.shares;
  if (shares === undefined) return [];
  return (['copy', 'wire', 'merge', 'update'] as const).map((name) => ({
    group,
    name,
    value: shares[name],
    text: percentText(shares[name]),
  }));
}

/** For training runs and stores with several workers. */
export function splitCharts(runs: readonly LabelledRun[]): Chart[] {
  const entries = repeatedEntries(runs);
  const names = seriesNames(entries, { ignored: ['flow'] });
  const bars = entries.flatMap((entry) => {
    const group = names.get(entry) ?? entry.result.name;
    return [...partBars(entry, group), ...shareBars(entry, group)];
  });
  if (bars.length === 0) return [];
  const head = {
    id: 'split',
    title: 'Where the time of a step goes',
    note: 'Parts run side by side: together they may be more than the step, or less.',
  };
  return [chartOf(head, bars, 'share of the step')];
}

function serverBars(entry: Entry, group: string): Bar[] {
  const { traffic } = entry.result;
  if (traffic === undefined) return [];
  return traffic.servers.flatMap(({ server, bytesReceived, bytesSent }) =>
    (
      [
        ['receives', bytesReceived],
        ['sends', bytesSent],
      ] as const
    ).map(([what, bytes]) => {
      const value = bytes / Math.max(1, traffic.batches);
      return {
        group,
        name: `server ${String(server)} ${what}`,
        value,
        text: sizeText(Math.round(value)),
      };
    }),
  );
}

/** Bytes per server, for stores with servers. */
export function serverCharts(runs: readonly LabelledRun[]): Chart[] {
  const entries = repeatedEntries(runs).filter(({ result }) => result.traffic !== undefined);
  const names = seriesNames(entries, { ignored: ['flow'] });
  const bars = entries.flatMap((entry) => serverBars(entry, names.get(entry) ?? entry.result.name));
  if (bars.length === 0) return [];
  const head = {
    id: 'servers',
    title: 'Bytes by server',
    note: 'Bytes of one batch. Servers that differ are out of balance.',
  };
  return [chartOf(head, bars, 'bytes of a batch')];
}
