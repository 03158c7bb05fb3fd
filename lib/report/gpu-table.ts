// The rates of a machine's GPUs in one table, each with its limit and the target share.
import { hasMeasurement, type CaseResult, type Report } from '../results/result.js';
import { gpuLines } from './summary.js';
import { tableLines, type Column } from './table.js';
import type { Tool } from './tool.js';
import { percentText } from '../results/units.js';

const columns: readonly Column[] = [
  { title: 'what', align: 'left' },
  { title: 'GB/s', align: 'right' },
  { title: 'limit', align: 'right', weight: 2 },
  { title: 'share', align: 'right' },
  { title: 'target', align: 'left' },
  { title: 'the limit is', align: 'left', weight: 1 },
];

const gigabytes = (bytesPerSecond: number): string => (bytesPerSecond / 1e9).toFixed(2);

/** Quick measurements are inaccurate, so no target applies. */
function cells(result: CaseResult, quick: boolean): string[] {
  if (!hasMeasurement(result)) return [result.name, '', '', '', result.status, ''];
  const { limit, algorithmBandwidth, values = {} } = result;
  const { target } = values;
  const judged = typeof target === 'number' && limit !== null && !quick;
  return [
    result.name,
    gigabytes(algorithmBandwidth.bytesPerSecond),
    limit === null ? '' : gigabytes(limit.copyBytesPerSecond),
    limit === null ? '' : percentText(limit.ratio, judged ? [target] : []),
    judged
      ? `${limit.ratio >= target ? 'reached' : 'MISSED'} ${percentText(target, [target])}`
      : '',
    limit?.basis ?? '',
  ];
}

function foot({ run, cases }: Report, room?: number): string[] {
  return [
    ...cases.flatMap((one) =>
      one.status === 'ok' ? [] : [`${one.status}: ${one.name}: ${one.reason}`],
    ),
    '',
    ...tableLines(
      columns,
      cases.map((one) => cells(one, run.options['quick'] === true)),
      room,
    ),
  ];
}

export const gpuTool: Tool = {
  name: 'gpu',
  head: ({ run, gpus }) => [
    ...(gpus === undefined ? [] : gpuLines(gpus)),
    ...(run.options['quick'] === true
      ? ['--quick: these figures prove that everything runs, and nothing else.']
      : []),
  ],
  groups: () => [],
  rows: () => [],
  foot,
};
