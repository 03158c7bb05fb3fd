import {
  hasMeasurement,
  type CaseResult,
  type IterationLine,
  type Scalar,
} from '../results/result.js';
import { megabytes } from '../results/units.js';
import { caseTitle, reportSummary } from './summary.js';
import type { Tool } from './tool.js';

/**
 * The lines of MXNet's tools/bandwidth/measure.py as its releases print them (Python's logging at INFO, six decimals),
 * for programs that parse the original's output.
 */
const prefix = 'INFO:root:';

/** The original's options, all of which are in its first line. */
const original: ReadonlySet<string> = new Set([
  'disp_batches',
  'gc_threshold',
  'gc_type',
  'gpus',
  'image_shape',
  'kv_store',
  'network',
  'num_batches',
  'num_classes',
  'num_layers',
  'optimizer',
  'test_results',
]);

/**
 * The original's options as argparse prints them, in alphabetical order with Python's values; ours are on a separate
 * line, which its readers ignore.
 */
export function optionsLines(options: Readonly<Record<string, Scalar>>): string[] {
  const entries = Object.entries(options)
    .map(([name, value]) => [pythonName(name), pythonValue(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const listed = (isOriginal: boolean): string =>
    entries
      .filter(([name]) => original.has(name) === isOriginal)
      .map(([name, value]) => `${name}=${value}`)
      .join(', ');
  const own = listed(false);
  return [`${prefix}Namespace(${listed(true)})`, ...(own === '' ? [] : [`${prefix}also ${own}`])];
}

export function arraysLine(arrays: number, bytes: number): string {
  return `${prefix}num of arrays = ${arrays}, total size = ${megabytes(bytes)} MB`;
}

export function iterationLine({
  iteration,
  seconds,
  bytesPerSecond,
  error,
}: IterationLine): string {
  const bandwidth = (bytesPerSecond / 1e9).toFixed(6);
  // Python prints NaN as nan.
  const shownError = error === null ? 'nan' : error.toFixed(6);
  return `${prefix}iter ${iteration}, ${seconds.toFixed(6)} sec, ${bandwidth} GB/sec per gpu, error ${shownError}`;
}

function rows(cases: readonly CaseResult[]): string[] {
  const lines: string[] = [];
  for (const result of cases) {
    if (!hasMeasurement(result)) continue;
    if (cases.length > 1) lines.push(caseTitle(result));
    if (result.arrays !== undefined) lines.push(arraysLine(result.arrays, result.bytes));
    for (const iteration of result.iterations ?? []) lines.push(iterationLine(iteration));
  }
  return lines;
}

export const storeTool: Tool = {
  name: 'measure',
  head: ({ run }) => optionsLines(run.options),
  groups: (cases) => [cases],
  rows,
  foot: reportSummary,
};

/** `kv-store` and `kvStore` become `kv_store`. */
function pythonName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replaceAll('-', '_');
}

function pythonValue(value: Scalar): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  const escaped = value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  // Python prefers single quotes, and double quotes over escapes.
  if (escaped.includes("'") && !escaped.includes('"')) return `"${escaped}"`;
  return `'${escaped.replaceAll("'", "\\'")}'`;
}
