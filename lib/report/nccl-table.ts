// The table of nccl-tests: its columns in its order, so that scripts that read those read ours. What it does not have,
// the share of the machine's limit, stands behind its last column.
import { hasMeasurement, type CaseResult } from '../measure/result.js';
import type { SweepRow } from '../measure/sweep.js';
import type { SweepWorld } from '../measure/sweep-world.js';
import type { DType } from '../tensor/dtype.js';

/** nccl-tests' names where they differ from ours. */
export const ncclTypeNames: Partial<Record<DType, string>> = {
  float16: 'half',
  float32: 'float',
  float64: 'double',
};

export interface TableHead {
  readonly title: string;
  readonly settings: Readonly<Record<string, string | number>>;
  readonly world: Pick<SweepWorld, 'ranks' | 'processes'>;
  readonly copyBytesPerSecond: number;
  readonly threads: number;
}

const giga = 1e9;
const micro = 1e6;
const widths = {
  bytes: 12,
  count: 13,
  type: 10,
  op: 7,
  root: 7,
  time: 9,
  bandwidth: 8,
  wrong: 7,
  share: 7,
};

function pad(text: string, width: number): string {
  return text.padStart(width);
}

/** Five significant digits at most, as columns of a table have room for. */
function shortest(value: number): string {
  if (value >= 10_000) return value.toFixed(0);
  if (value >= 1000) return value.toFixed(1);
  return value.toFixed(2);
}

export function tableHead(head: TableHead): string {
  const { title, settings, world, copyBytesPerSecond, threads } = head;
  const group = widths.time + 2 * widths.bandwidth + widths.wrong;
  const left = widths.bytes + widths.count + widths.type + widths.op + widths.root;
  const columns = (names: readonly string[], units: boolean): string =>
    pad(names[0] ?? '', widths.time) +
    pad(names[1] ?? '', widths.bandwidth) +
    pad(names[2] ?? '', widths.bandwidth) +
    pad(units ? '' : '#wrong', widths.wrong);
  const names = columns(['time', 'algbw', 'busbw'], false);
  const units = columns(['(us)', '(GB/s)', '(GB/s)'], true);
  const first =
    pad('size', widths.bytes - 1) +
    pad('count', widths.count) +
    pad('type', widths.type) +
    pad('redop', widths.op) +
    pad('root', widths.root);
  const second = pad('(B)', widths.bytes - 1) + pad('(elements)', widths.count);
  const share = (text: string): string => pad(text, widths.share);
  return [
    `# ${title}`,
    `# ${Object.entries(settings)
      .map(([name, value]) => `${name}: ${String(value)}`)
      .join('  ')}`,
    '#',
    '# Using ranks',
    ...world.ranks.map(
      ({ rank, pid, host }) =>
        `#  Rank ${pad(String(rank), 2)} Group  0 Pid ${pad(String(pid), 6)} on ${host} device cpu`,
    ),
    '#',
    `# Memory copy of this machine: ${shortest(copyBytesPerSecond / giga)} GB/s read + written on ${String(threads)} threads.`,
    '# limit: share of it that a call reached, by the bytes that any implementation must move.',
    '#',
    `#${''.padStart(left - 1)}${pad('out-of-place', group)}${pad('in-place', group)}${share('limit')}${share('limit')}`,
    `#${first}${names}${names}${share('out')}${share('in')}`,
    `#${second.padEnd(left - 1)}${units}${units}${share('(%)')}${share('(%)')}`,
  ]
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

function group(result: CaseResult): string {
  const cells = hasMeasurement(result)
    ? [
        shortest(result.statistics.medianSeconds * micro),
        shortest(result.algorithmBandwidth.bytesPerSecond / giga),
        shortest(result.busBandwidth.bytesPerSecond / giga),
        result.check.kind === 'none' ? 'N/A' : String(result.check.wrong ?? 0),
      ]
    : Array<string>(4).fill(result.status === 'waived' ? 'N/A' : 'error');
  const [time = '', algorithm = '', bus = '', wrong = ''] = cells;
  return (
    pad(time, widths.time) +
    pad(algorithm, widths.bandwidth) +
    pad(bus, widths.bandwidth) +
    pad(wrong, widths.wrong)
  );
}

function share(result: CaseResult): string {
  const limit = hasMeasurement(result) ? result.limit : null;
  return pad(limit === null ? 'N/A' : (limit.ratio * 100).toFixed(0), widths.share);
}

export function tableRow(row: SweepRow): string {
  const { bytes, count, dtype, op, root, outOfPlace, inPlace } = row;
  return (
    pad(String(bytes), widths.bytes) +
    pad(String(count), widths.count) +
    pad(ncclTypeNames[dtype] ?? dtype, widths.type) +
    pad(op ?? 'none', widths.op) +
    pad(String(root ?? -1), widths.root) +
    group(outOfPlace) +
    group(inPlace) +
    `${share(outOfPlace)}${share(inPlace)}\n`
  );
}

/** Mean bus bandwidth over all sizes and both placements, in bytes a second; 0 when nothing was measured. */
export function averageBusBandwidth(cases: readonly CaseResult[]): number {
  const measured = cases.filter(hasMeasurement);
  const sum = measured.reduce((total, one) => total + one.busBandwidth.bytesPerSecond, 0);
  return measured.length === 0 ? 0 : sum / measured.length;
}

export function tableFoot(cases: readonly CaseResult[]): string {
  const failed = cases.filter((one) => one.status === 'error');
  const wrong = cases.filter(hasMeasurement).reduce((sum, one) => sum + (one.check.wrong ?? 0), 0);
  const reasons = new Set(failed.map((one) => `# ${one.name} failed: ${one.reason}`));
  return [
    `# Out of bounds values : ${String(wrong)} ${failed.length === 0 ? 'OK' : 'FAILED'}`,
    `# Avg bus bandwidth    : ${(averageBusBandwidth(cases) / giga).toFixed(4)}`,
    '#',
    ...reasons,
  ]
    .map((line) => `${line}\n`)
    .join('');
}
