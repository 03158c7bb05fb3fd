import {
  hasMeasurement,
  type CaseResult,
  type Report,
  type ReportHead,
} from '../results/result.js';
import { environmentLine } from './summary.js';
import { fittingColumns, leftOutLines, type Column } from './table.js';
import type { Tool } from './tool.js';

interface FixedColumn extends Column {
  readonly unit: string;
  readonly width: number;
}

/** Averaging with neighbours and everybody's sum beside it: one line for each operation, size and placement. */
const columns: readonly FixedColumn[] = [
  { title: 'size', unit: '(B)', width: 12, align: 'right' },
  { title: 'type', unit: '', width: 10, align: 'right', weight: 4 },
  { title: 'placement', unit: '', width: 14, align: 'right', weight: 6 },
  { title: 'operation', unit: '', width: 34, align: 'left' },
  { title: 'time', unit: '(us)', width: 11, align: 'right' },
  { title: 'p95', unit: '(us)', width: 11, align: 'right', weight: 3 },
  { title: 'of', name: 'of all_reduce', unit: 'all_reduce', width: 12, align: 'right' },
  { title: 'sent/rank', unit: '(B a step)', width: 13, align: 'right', weight: 2 },
  { title: 'sent/host', unit: '(B a step)', width: 13, align: 'right', weight: 1 },
  { title: 'error', unit: '', width: 11, align: 'right', weight: 5 },
];
const operation = 3;
/** Below this the name of an operation is without what all of them share. */
const narrow = 100;
const shortOperation = 23;

export const neighborsTool: Tool = {
  name: 'collectives',
  owns: ({ cases }) => cases.some(({ name }) => name.endsWith('neighbor_all_reduce')),
  head: (report, ...[, room]) => head(report, room),
  groups: (cases) => [cases],
  rows: (cases, room) => cases.map((one) => line(one, room)),
  foot,
};

function widthsIn(room: number): number[] {
  return columns.map(({ width }, index) =>
    index === operation && room < narrow ? shortOperation : width,
  );
}

/** Beside the sign of a comment. */
function keptIn(room: number): number[] {
  return fittingColumns(columns, widthsIn(room), room - 1, 0);
}

function row(cells: readonly string[], room: number): string {
  const widths = widthsIn(room);
  return keptIn(room)
    .map((index) => {
      const [cell = '', width = 0] = [cells[index], widths[index]];
      if (index !== operation) return cell.padStart(width);
      const name = room < narrow ? cell.replace(/_all_reduce$/, '') : cell;
      return `  ${name}`.padEnd(width);
    })
    .join('');
}

function head({ run, environment }: ReportHead, room = Infinity): string[] {
  const { ranks, topology, dynamic, ranksPerNode } = run.options;
  return [
    `# gradlink ${run.packageVersion}: ${[run.tool, ...run.commandLine].join(' ')}`,
    `# ${environmentLine(environment)}`,
    `# ${String(ranks)} ranks, ${String(ranksPerNode)} a host; graph ${String(topology)}, ${
      dynamic === true ? 'one neighbour a step' : 'all neighbours in every step'
    }`,
    ...leftOutLines(columns, keptIn(room), room).map((text) => `# ${text}`),
    ...(['title', 'unit'] as const).map((part) =>
      `#${row(
        columns.map((column) => column[part]),
        room,
      )}`.trimEnd(),
    ),
  ];
}

function line(result: CaseResult, room = Infinity): string {
  const { bytes, dtype, placement } = result.parameters;
  const left = [String(bytes), String(dtype), String(placement), result.name];
  if (!hasMeasurement(result))
    return `# ${left.join(' ')}: ${'reason' in result ? result.reason : ''}`;
  const { statistics, check, values = {} } = result;
  const ratio = values['timeOverAllReduce'];
  const cells = [
    ...left,
    ...[statistics.medianSeconds, statistics.p95Seconds].map((s) => (s * 1e6).toFixed(1)),
    ratio === null || ratio === undefined ? '-' : ratio.toFixed(3),
    ...['sentBytesPerRank', 'sentBytesPerHost'].map((name) =>
      String(Math.round(values[name] ?? 0)),
    ),
    check.kind === 'none' ? 'N/A' : (check.error ?? Number.NaN).toExponential(1),
  ];
  return ` ${row(cells, room)}`.trimEnd();
}

/** What failed, or that nothing did. */
function foot({ cases }: Pick<Report, 'cases'>): string[] {
  const failed = cases.filter(({ status }) => status === 'error');
  return [
    '# of all_reduce: time over that of all_reduce (sum) of the same size and placement, both measured in turns',
    '# sent: what must be sent at least, by the rank and the host that send most; all_reduce as a ring does',
    ...failed.flatMap((one) =>
      'reason' in one
        ? [`# FAILED ${one.name} ${JSON.stringify(one.parameters)}: ${one.reason}`]
        : [],
    ),
    ...(failed.length === 0 ? ['# all results right'] : []),
  ];
}
