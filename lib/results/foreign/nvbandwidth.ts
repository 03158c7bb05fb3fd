// nvbandwidth: the JSON of -j, and its text.
import { NvText as NvLines, nvUnit, type NvCell } from '../../printed/nvbandwidth.js';
import { unitNamed } from '../../printed/units.js';
import { waivedCase } from '../case.js';
import type { CaseResult, Report, Scalar } from '../result.js';
import {
  amountIn,
  fieldsOf,
  foreignCase,
  foreignReport,
  listIn,
  textIn,
  type Fields,
} from './record.js';

/** It reports neither size nor time: use the time of this many bytes at its rate. */
const bytes = 1e9;

/**
 * The direction of the data. Captions tell who copies, and those for both directions name the wrong ends: a reading GPU
 * is the row and reads from the column.
 */
function placesOf(test: string, caption: string, cell: NvCell): Record<string, Scalar> {
  const [row, column] = [`gpu:${cell.row}`, `gpu:${cell.column}`];
  if (test.startsWith('host_to_') || test.startsWith('host_device_latency')) {
    return { from: 'host', to: column };
  }
  if (test.startsWith('device_to_host') || test.startsWith('all_to_host')) {
    return { from: column, to: 'host' };
  }
  if (test.startsWith('device_local')) return { from: column, to: column };
  if (test.startsWith('all_to_one')) return { from: 'all others', to: column };
  if (test.startsWith('one_to_all')) return { from: column, to: 'all others' };
  if (!test.startsWith('device_to_device')) return { row: cell.row, column: cell.column };
  if (/\btotal\b/i.test(caption)) return { from: row, to: column, figure: 'total' };
  const toRow = test.includes('latency') || /(?:read|write)1\b/i.test(caption);
  const toColumn = /(?:read|write)2\b/i.test(caption) || test.includes('_write_');
  return toRow || !toColumn ? { from: column, to: row } : { from: row, to: column };
}

function caseOf(test: string, caption: string, cell: NvCell): CaseResult | undefined {
  const unit = nvUnit(caption) ?? unitNamed(test.includes('latency') ? 'ns' : 'GB/s');
  if (unit === undefined || !(cell.value > 0)) return undefined;
  const value = cell.value * unit.factor;
  const isTime = unit.dimension === 'time';
  if (!isTime && unit.dimension !== 'bytes/s') return undefined;
  return foreignCase({
    name: test,
    parameters: {
      ...placesOf(test, caption, cell),
      quantity: isTime ? 'latency' : 'bandwidth',
    },
    samplesSeconds: [isTime ? value : bytes / value],
    bytes: isTime ? 0 : bytes,
    algorithm: isTime ? 0 : value,
    bus: isTime ? 0 : value,
    formula: isTime ? 'a latency' : 'as nvbandwidth printed it; t is that of 1 GB',
    wrong: null,
  });
}

/** Bidirectional tests have three matrices, one below the other: each direction, and both. */
function captionsOf(test: string, caption: string, rows: number, columns: number): string[] {
  const several = test.includes('bidirectional') && test.startsWith('device_to_device');
  if (!several || rows !== 3 * columns) return [caption];
  const unit = /\([^()]*\)\s*$/.exec(caption)?.[0] ?? '';
  return ['Read1', 'Read2', 'Total'].map((which) => `${which} ${unit}`);
}

function casesOf(value: unknown): CaseResult[] {
  const told = fieldsOf(value);
  const test = textIn(told['name']) ?? 'unnamed';
  const caption = textIn(told['bandwidth_description']) ?? '';
  const matrix = listIn(told['bandwidth_matrix']).map(listIn);
  const columns = matrix[0]?.length ?? 0;
  const captions = captionsOf(test, caption, matrix.length, columns);
  const rows = matrix.length / captions.length;
  const cases = matrix.flatMap((row, at) =>
    row.flatMap((cell, column) => {
      const figure = amountIn(cell);
      if (figure === undefined) return [];
      const place = { row: String(at % rows), column: String(column), value: figure };
      return caseOf(test, captions[Math.floor(at / rows)] ?? caption, place) ?? [];
    }),
  );
  if (cases.length > 0) return cases;
  const status = textIn(told['status']) ?? 'no figures';
  const why = textIn(told['error']);
  return [notRun(test, why === undefined ? status : `${status}: ${why}`)];
}

function notRun(test: string, status: string): CaseResult {
  const identity = { name: test, parameters: {} };
  const reason = `nvbandwidth: ${status}`;
  if (/^(?:error|not found)/i.test(status)) return { status: 'error', ...identity, reason };
  return waivedCase(identity, reason);
}

/** The report of -j's file; undefined for other JSON. */
export function nvbandwidthJson(value: Fields): Report | undefined {
  const told = fieldsOf(value['nvbandwidth']);
  if (!Array.isArray(told['testcases'])) return undefined;
  const version = textIn(told['version']) ?? textIn(told['git_version']);
  const options = ['CUDA Runtime Version', 'Driver Version'].flatMap((name) => {
    const one = told[name];
    return typeof one === 'string' || typeof one === 'number' ? [[name, one] as const] : [];
  });
  const run = { tool: 'nvbandwidth', version, options: Object.fromEntries(options) } as const;
  return foreignReport(run, told['testcases'].flatMap(casesOf));
}

/** Reads its text line by line. */
export class NvbandwidthText {
  readonly cases: CaseResult[] = [];
  version: string | undefined;
  private readonly lines = new NvLines();
  private test = 'unnamed';
  private caption = '';

  read(line: string, cells: readonly string[]): void {
    const found = this.lines.read(line, cells);
    if (found === undefined) {
      this.version = /^nvbandwidth Version: (\S{1,40})/.exec(line)?.[1] ?? this.version;
      return;
    }
    if (found.kind === 'test') this.test = found.test;
    if (found.kind === 'caption') this.caption = found.caption;
    if (found.kind === 'waived') this.cases.push(notRun(this.test, found.text));
    if (found.kind !== 'row') return;
    for (const cell of found.cells) {
      const one = caseOf(this.test, this.caption, cell);
      if (one !== undefined) this.cases.push(one);
    }
  }
}
