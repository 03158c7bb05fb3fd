export {
  collectivesFooter,
  collectivesHeader,
  collectivesRow,
  groupBySize,
} from './collectives-table.js';
export { arraysLine, iterationLine, optionsLine } from './mxnet-lines.js';
export {
  renderReport,
  reportFormats,
  toCsv,
  toJson,
  toMarkdown,
  type ReportFormat,
} from './render.js';
export { caseTitle, environmentLine, reportSummary, summaryLines } from './summary.js';
export { markdownTable, tableLines, type Column } from './table.js';
