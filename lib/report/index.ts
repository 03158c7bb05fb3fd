export {
  collectivesFooter,
  collectivesHeader,
  collectivesRow,
  groupBySize,
} from './collectives-table.js';
export {
  comparisonFormats,
  comparisonVerdict,
  renderComparison,
  type ComparisonFormat,
} from './comparison.js';
export { ddpFooter, ddpHeader, ddpLines, ddpSizeLines } from './ddp-tables.js';
export { toJunit } from './junit.js';
export { arraysLine, iterationLine, optionsLine } from './mxnet-lines.js';
export {
  predictionFormats,
  renderPrediction,
  renderValidations,
  type PredictionFormat,
} from './prediction.js';
export {
  isOfNeighbors,
  neighborsFooter,
  neighborsHeader,
  neighborsRow,
} from './neighbors-table.js';
export { p2pCaseLines, p2pFooter, p2pHeader } from './p2p-tables.js';
export {
  renderReport,
  reportFormats,
  toCsv,
  toJson,
  toMarkdown,
  type ReportFormat,
} from './render.js';
export { caseTitle, environmentLine, gpuLines, reportSummary, summaryLines } from './summary.js';
export { markdownTable, tableLines, type Column } from './table.js';
