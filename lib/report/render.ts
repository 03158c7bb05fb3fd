import { hasMeasurement, type CaseResult, type Report } from '../results/result.js';
import { csvText } from './csv.js';
import { hostLines } from './host-lines.js';
import { toJunit } from './junit.js';
import { code, markdownTable, plain } from './markdown.js';
import { columnNames, flatRecord } from './rows.js';
import { caseTitle, commandText, environmentLine, gpuLines, startedText } from './summary.js';
import type { Column } from './table.js';
import { textLines } from './tool.js';
import { toolOf } from './tools.js';
import { bandwidthText, percentText, sizeText, timeText } from '../results/units.js';

/** Formats of `--format`. */
export const reportFormats = ['text', 'json', 'csv', 'markdown', 'junit'] as const;

export type ReportFormat = (typeof reportFormats)[number];

export function renderReport(report: Report, format: ReportFormat): string {
  switch (format) {
    case 'text':
      return `${textLines(toolOf(report), report).join('\n')}\n`;
    case 'json':
      return toJson(report);
    case 'csv':
      return toCsv(report);
    case 'markdown':
      return toMarkdown(report);
    case 'junit':
      return toJunit(report);
  }
}

/** JSON of `lib/results/schema.ts`. Only an option's value can be a number that is not finite; it becomes null. */
export function toJson(report: Report): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}

/** A row for each case under a header line; RFC 4180, absent values are empty cells. */
export function toCsv(report: Report): string {
  const columns = columnNames(report.cases);
  const rows = report.cases.map((result) => {
    const record = flatRecord(result);
    return columns.map((name) => record[name] ?? null);
  });
  return csvText([columns, ...rows]);
}

/** Columns of a table with a row for each case. */
export const caseColumns: readonly Column[] = [
  { title: 'case', align: 'left' },
  { title: 'size', align: 'right' },
  { title: 'median', align: 'right' },
  { title: 'min', align: 'right' },
  { title: 'p95', align: 'right' },
  { title: 'algorithm bandwidth', align: 'right' },
  { title: 'bus bandwidth', align: 'right' },
  { title: 'of limit', align: 'right' },
  { title: 'wrong', align: 'right' },
  { title: 'verdict', align: 'left' },
];

/** A heading, the machine, and a table with a row for each case. */
export function toMarkdown(report: Report): string {
  const { run, environment, gpus, cases } = report;
  const lines = [
    `## ${plain(run.program ?? `gradlink ${run.tool}`)}`,
    '',
    `- Command: ${code(run.program === undefined ? [run.tool, ...run.commandLine].join(' ') : commandText(run))}`,
    `- Started: ${plain(startedText(run))}`,
    `- Machine: ${plain(environmentLine(environment))}`,
    ...(gpus === undefined ? [] : gpuLines(gpus).map((line) => `- ${plain(line)}`)),
    ...hostLines(report.hosts).map((line) => `- ${plain(line)}`),
    '',
    ...markdownTable(caseColumns, cases.map(caseCells)),
  ];
  const formulas = new Set(
    cases
      .filter(hasMeasurement)
      .flatMap(({ algorithmBandwidth, busBandwidth }) => [
        `Algorithm bandwidth = ${algorithmBandwidth.formula}.`,
        `Bus bandwidth = ${busBandwidth.formula}.`,
      ]),
  );
  if (formulas.size > 0) lines.push('', plain([...formulas].join(' ')));
  return `${lines.join('\n')}\n`;
}

export function caseCells(result: CaseResult): string[] {
  if (!hasMeasurement(result)) {
    return [
      caseTitle(result),
      '',
      '',
      '',
      '',
      '',
      '',
      '',
      '',
      `${result.status}: ${result.reason}`,
    ];
  }
  const { statistics, algorithmBandwidth, busBandwidth, limit, check, verdict } = result;
  const judged = [verdict.level, ...(verdict.likelyCause === null ? [] : [verdict.likelyCause])];
  return [
    caseTitle(result),
    sizeText(result.bytes),
    timeText(statistics.medianSeconds),
    timeText(statistics.minSeconds),
    timeText(statistics.p95Seconds),
    bandwidthText(algorithmBandwidth.bytesPerSecond),
    bandwidthText(busBandwidth.bytesPerSecond),
    limit === null ? '' : percentText(limit.ratio),
    check.wrong === null ? '' : String(check.wrong),
    (result.status === 'ok' ? judged : [`error: ${result.reason}`]).join(': '),
  ];
}
