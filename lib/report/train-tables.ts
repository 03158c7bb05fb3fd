// Tables of several training runs: ElasticDL's over numbers of workers, and TianShu's over a grid. Figures are shown as
// measured, including superlinear speedups and falling throughput.
import { median } from 'simple-statistics';

import { hasMeasurement, type CaseResult } from '../results/result.js';
import { targetEfficiency } from '../predict/index.js';
import { environmentLine } from './summary.js';
import { markdownTable } from './markdown.js';
import { tableLines, type Column } from './table.js';
import type { Measured } from './repeats.js';
import type { Tool } from './tool.js';
import { mebibyte, percentText } from '../results/units.js';

type Rows = readonly (readonly string[])[];

const none = '-';

function value(run: Measured, name: string): number {
  return run.values?.[name] ?? 0;
}

/** The first ones are dropped first in a narrow terminal. */
function columnsOf(
  titles: readonly string[],
  left: number,
  lightest: readonly string[] = [],
): Column[] {
  return titles.map((title, index) => {
    const weight = lightest.indexOf(title);
    const align = index < left ? 'left' : 'right';
    return { title, align, ...(weight < 0 ? {} : { weight }) };
  });
}

/** Samples per second of all workers, over all measured steps. */
export function throughput(run: Measured): number {
  const { batchSize, workers } = run.parameters;
  const seconds = run.samplesSeconds.reduce((sum, sample) => sum + sample, 0);
  return (Number(batchSize) * Number(workers) * run.samplesSeconds.length) / seconds;
}

const elasticDlTitles = [
  'model',
  'status',
  'workers',
  'arrays',
  'parameters',
  'MiB',
  'batch',
  'batches/task',
  'task_process s',
  'batch_process s',
  'get_model s',
  'report_gradient s',
  'device-to-host s',
  'compute:comm',
  'comm %',
  'speed /s',
  'speedup',
];

const elasticDlLightest = [
  'arrays',
  'parameters',
  'batches/task',
  'MiB',
  'device-to-host s',
  'get_model s',
  'compute:comm',
  'batch_process s',
  'report_gradient s',
  'task_process s',
  'batch',
  'comm %',
];

/**
 * ElasticDL's figures, a row per run: seconds of a task. report_gradient is communication without overlap, without the
 * copies between backend and communication memory, which have their own column.
 */
export function elasticDlTable(cases: readonly CaseResult[], room?: number): string[] {
  const columns = columnsOf(elasticDlTitles, 2, elasticDlLightest);
  return tableLines(columns, elasticDlCells(cases), room);
}

export function elasticDlMarkdown(cases: readonly CaseResult[]): string {
  return [
    '# Training by tasks',
    '',
    'Seconds of a task, the mean of those measured; samples of all workers a second; speedup against one worker of the same model and batch.',
    '',
    ...markdownTable(columnsOf(elasticDlTitles, 2), elasticDlCells(cases)),
    '',
  ].join('\n');
}

/** Titles and cells, for CSV. */
export function elasticDlRecords(cases: readonly CaseResult[]): Rows {
  return [elasticDlTitles, ...elasticDlCells(cases)];
}

function elasticDlCells(cases: readonly CaseResult[]): Rows {
  const measured = cases.filter(hasMeasurement);
  return cases.map((one): readonly string[] => {
    const { model, workers, batchSize } = one.parameters;
    const base = measured.find(
      ({ parameters }) =>
        parameters.workers === 1 &&
        parameters.model === model &&
        parameters.batchSize === batchSize,
    );
    if (!hasMeasurement(one)) {
      const cells = elasticDlTitles.map(() => none);
      cells.splice(0, 3, String(model), `${one.status}: ${one.reason}`, String(workers));
      cells[6] = String(batchSize);
      return cells;
    }
    const steps = one.iterationsPerSample;
    const task = steps * one.statistics.meanSeconds;
    const of = (name: string): number => steps * value(one, name);
    const gradient = of('exposedSeconds');
    const copies = of('copySeconds');
    const model_ = of('modelSeconds');
    const batch =
      of('forwardSeconds') +
      of('backwardSeconds') +
      copies +
      gradient +
      model_ +
      of('updateSeconds');
    const computing = batch - gradient;
    const alone = Number(workers) === 1;
    const rate = throughput(one);
    return [
      String(model),
      one.status,
      String(workers),
      String(one.arrays ?? 0),
      String(value(one, 'trainableParameters')),
      (one.bytes / mebibyte).toFixed(3),
      String(batchSize),
      String(steps),
      task.toPrecision(4),
      batch.toPrecision(4),
      model_.toPrecision(4),
      gradient.toPrecision(4),
      copies.toPrecision(4),
      alone || computing <= 0 ? none : `10:${((10 * gradient) / computing).toFixed(1)}`,
      alone ? none : percentText(gradient / batch),
      rate.toFixed(2),
      base === undefined ? none : (rate / throughput(base)).toFixed(2),
    ];
  });
}

/** A report as text: a grid, or else a row per run. */
export const trainTool: Tool = {
  name: 'train',
  head: ({ environment }) => [environmentLine(environment), ''],
  // One table of all runs.
  groups: (cases) => [cases],
  rows: (cases, room) => {
    const grid = cases.some(({ parameters }) => parameters.machines !== undefined);
    return grid ? gridTable(gridRows(cases, targetEfficiency), room) : elasticDlTable(cases, room);
  },
  foot: () => [],
};

/** A cell of the grid: the runs of one shape. */
export interface GridRow {
  readonly model: string;
  readonly machines: number;
  readonly devices: number;
  readonly batchSize: number;
  /** Throughput of each successful run, in samples per second. */
  readonly throughputs: readonly number[];
  readonly median: number | null;
  /** Relative to the median of one device on one machine with the same batch; null if that is missing. */
  readonly speedup: number | null;
  readonly efficiency: number | null;
  readonly target: number;
  readonly passed: boolean | null;
  /** Means over all runs; null if unknown. */
  readonly utilisation: Readonly<Record<(typeof utilisationNames)[number], number | null>>;
  /** Why runs are missing. */
  readonly missing: readonly string[];
}

const utilisationNames = [
  'cpuShare',
  'memoryShare',
  'diskShare',
  'gpuShare',
  'networkReceivedBytesPerSecond',
  'networkSentBytesPerSecond',
] as const;

/** Cells by batch, the largest first, then machines, then devices. */
export function gridRows(cases: readonly CaseResult[], target: number): GridRow[] {
  const cells = new Map<string, CaseResult[]>();
  for (const one of cases) {
    const { model, machines, devicesPerMachine, batchSize } = one.parameters;
    const key = JSON.stringify([model, machines, devicesPerMachine, batchSize]);
    cells.set(key, [...(cells.get(key) ?? []), one]);
  }
  const rows = [...cells.values()].map((runs) => gridRow(runs, target));
  return rows
    .map((row) => {
      const one = rows.find(
        ({ model, machines, devices, batchSize }) =>
          model === row.model && machines * devices === 1 && batchSize === row.batchSize,
      );
      if (row.median === null || one?.median === null || one === undefined) return row;
      const speedup = row.median / one.median;
      const efficiency = speedup / (row.machines * row.devices);
      return { ...row, speedup, efficiency, passed: efficiency >= target };
    })
    .sort((a, b) => b.batchSize - a.batchSize || a.machines - b.machines || a.devices - b.devices);
}

function gridRow(runs: readonly CaseResult[], target: number): GridRow {
  const [first] = runs;
  const { model, machines, devicesPerMachine, batchSize } = first!.parameters;
  const measured = runs.filter(hasMeasurement).filter(({ status }) => status === 'ok');
  const throughputs = measured.map(throughput);
  const meanOf = (name: string): number | null => {
    const known = measured.flatMap(({ values }) => values?.[name] ?? []);
    return known.length === 0 ? null : known.reduce((sum, one) => sum + one, 0) / known.length;
  };
  return {
    model: String(model),
    machines: Number(machines),
    devices: Number(devicesPerMachine),
    batchSize: Number(batchSize),
    throughputs,
    median: throughputs.length === 0 ? null : median(throughputs),
    speedup: null,
    efficiency: null,
    target,
    passed: null,
    utilisation: Object.fromEntries(
      utilisationNames.map((name) => [name, meanOf(name)]),
    ) as GridRow['utilisation'],
    missing: [...new Set(runs.flatMap((one) => (one.status === 'ok' ? [] : [one.reason])))],
  };
}

const gridTitles = [
  'model',
  'machines',
  'devices/machine',
  'batch/device',
  'runs',
  'median /s',
  'speedup',
  'efficiency',
  'target',
  'cpu',
  'memory',
  'disk',
  'gpu',
  'net in MB/s',
  'net out MB/s',
  'missing',
];

function gridCells(rows: readonly GridRow[]): Rows {
  const fixed = (known: number | null, digits: number): string =>
    known === null ? none : known.toFixed(digits);
  const share = (known: number | null, limits?: readonly number[]): string =>
    known === null ? none : percentText(known, limits);
  return rows.map((row) => {
    const used = row.utilisation;
    const megabytesOf = (rate: number | null): string =>
      fixed(rate === null ? null : rate / 1e6, 2);
    return [
      row.model,
      String(row.machines),
      String(row.devices),
      String(row.batchSize),
      row.throughputs.length === 0
        ? none
        : row.throughputs.map((rate) => rate.toFixed(2)).join(' '),
      fixed(row.median, 2),
      fixed(row.speedup, 2),
      share(row.efficiency, [row.target]),
      row.passed === null ? none : row.passed ? 'pass' : 'fail',
      share(used.cpuShare),
      share(used.memoryShare),
      share(used.diskShare),
      share(used.gpuShare),
      megabytesOf(used.networkReceivedBytesPerSecond),
      megabytesOf(used.networkSentBytesPerSecond),
      row.missing.length === 0 ? none : row.missing.join('; '),
    ];
  });
}

const gridLightest = [
  'disk',
  'runs',
  'net in MB/s',
  'net out MB/s',
  'memory',
  'gpu',
  'cpu',
  'batch/device',
  'target',
  'missing',
  'speedup',
];

export function gridTable(rows: readonly GridRow[], room?: number): string[] {
  return tableLines(columnsOf(gridTitles, 1, gridLightest), gridCells(rows), room);
}

export function gridMarkdown(rows: readonly GridRow[], target: number): string {
  return [
    '# Training throughput',
    '',
    'Samples a second of all devices, the median of the runs. Speedup is against one device on one machine with the same batch,',
    `efficiency is speedup by devices; the target is ${percentText(target, [target])}. Utilisation is the mean over the machines, in the same steps.`,
    '',
    ...markdownTable(columnsOf(gridTitles, 1), gridCells(rows)),
    '',
  ].join('\n');
}

/** Titles and cells, for CSV. */
export function gridRecords(rows: readonly GridRow[]): Rows {
  return [gridTitles, ...gridCells(rows)];
}
