import {
  hasMeasurement,
  type CaseResult,
  type Report,
  type ReportHead,
} from '../results/result.js';
import { environmentLine } from './summary.js';
import type { Tool } from './tool.js';

/** Averaging with neighbours and everybody's sum beside it: one line for each operation, size and placement. */
const titles = [
  [
    'size',
    'type',
    'placement',
    'operation',
    'time',
    'p95',
    'of',
    'sent/rank',
    'sent/host',
    'error',
  ],
  ['(B)', '', '', '', '(us)', '(us)', 'all_reduce', '(B a step)', '(B a step)', ''],
] as const;
const widths = [12, 10, 14, 34, 11, 11, 12, 13, 13, 11] as const;

export const neighborsTool: Tool = {
  name: 'collectives',
  owns: ({ cases }) => cases.some(({ name }) => name.endsWith('neighbor_all_reduce')),
  head,
  groups: (cases) => [cases],
  rows: (cases) => cases.map(line),
  foot,
};

function row(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i === 3 ? `  ${cell}`.padEnd(widths[i]) : cell.padStart(widths[i] ?? 0)))
    .join('');
}

function head({ run, environment }: ReportHead): string[] {
  const { ranks, topology, dynamic, ranksPerNode } = run.options;
  return [
    `# gradlink ${run.packageVersion}: ${[run.tool, ...run.commandLine].join(' ')}`,
    `# ${environmentLine(environment)}`,
    `# ${String(ranks)} ranks, ${String(ranksPerNode)} a host; graph ${String(topology)}, ${
      dynamic === true ? 'one neighbour a step' : 'all neighbours in every step'
    }`,
    ...titles.map((line) => `#${row(line)}`.trimEnd()),
  ];
}

function line(result: CaseResult): string {
  const { bytes, dtype, placement } = result.parameters;
  const left = [String(bytes), String(dtype), String(placement), result.name];
  if (!hasMeasurement(result))
    return `# ${left.join(' ')}: ${'reason' in result ? result.reason : ''}`;
  const { statistics, check, values = {} } = result;
  const ratio = values['timeOverAllReduce'];
  return ` ${row([
    ...left,
    ...[statistics.medianSeconds, statistics.p95Seconds].map((s) => (s * 1e6).toFixed(1)),
    ratio === null || ratio === undefined ? '-' : ratio.toFixed(3),
    ...['sentBytesPerRank', 'sentBytesPerHost'].map((name) =>
      String(Math.round(values[name] ?? 0)),
    ),
    check.kind === 'none' ? 'N/A' : (check.error ?? Number.NaN).toExponential(1),
  ])}`;
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
