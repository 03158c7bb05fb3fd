import {
  hasMeasurement,
  type CaseResult,
  type Report,
  type ReportHead,
} from '../results/result.js';
import { headLines, nothingRan } from './summary.js';
import { FixedTable, type FixedColumn } from './table.js';
import type { Tool } from './tool.js';

/** Neighbour averaging with all_reduce: one line per operation, size and placement. */
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
/** Below this width operation names lose their common part. */
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

function tableIn(room: number): FixedTable {
  const own = (one: FixedColumn, index: number): FixedColumn =>
    index === operation && room < narrow ? { ...one, width: shortOperation } : one;
  return new FixedTable(columns.map(own), room);
}

function head(report: ReportHead, room = Infinity): string[] {
  const { ranks, topology, dynamic, ranksPerNode } = report.run.options;
  return [
    ...headLines(report),
    `# ${String(ranks)} ranks, ${String(ranksPerNode)} a host; graph ${String(topology)}, ${
      dynamic === true ? 'one neighbour a step' : 'all neighbours in every step'
    }`,
    ...tableIn(room).head(),
  ];
}

function line(result: CaseResult, room = Infinity): string {
  const { bytes, dtype, placement } = result.parameters;
  const left = [String(bytes), String(dtype), String(placement)];
  if (!hasMeasurement(result))
    return `# ${[...left, result.name].join(' ')}: ${'reason' in result ? result.reason : ''}`;
  const { statistics, check, values = {} } = result;
  const ratio = values['timeOverAllReduce'];
  const cells = [
    ...left,
    room < narrow ? result.name.replace(/_all_reduce$/, '') : result.name,
    ...[statistics.medianSeconds, statistics.p95Seconds].map((s) => (s * 1e6).toFixed(1)),
    ratio === null || ratio === undefined ? '-' : ratio.toFixed(3),
    ...['sentBytesPerRank', 'sentBytesPerHost'].map((name) =>
      String(Math.round(values[name] ?? 0)),
    ),
    check.kind === 'none' ? 'N/A' : (check.error ?? Number.NaN).toExponential(1),
  ];
  return ` ${tableIn(room).row(cells)}`.trimEnd();
}

/** The failures, or that there are none. */
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
    ...nothingRan(cases).map((line) => `# ${line}`),
    ...(failed.length === 0 && cases.some(hasMeasurement) ? ['# all results right'] : []),
  ];
}
