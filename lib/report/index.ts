export { checkTool } from './check-lines.js';
export { collectivesTool } from './collectives-table.js';
export {
  comparisonFormats,
  comparisonVerdict,
  renderComparison,
  type ComparisonFormat,
} from './comparison.js';
export { ddpTool } from './ddp-tables.js';
export { gpuTool } from './gpu-table.js';
export { toJunit } from './junit.js';
export { arraysLine, iterationLine, optionsLines, storeTool } from './mxnet-lines.js';
export {
  predictionFormats,
  renderPrediction,
  renderValidations,
  type PredictionFormat,
} from './prediction.js';
export { neighborsTool } from './neighbors-table.js';
export { p2pTool } from './p2p-tables.js';
export { pairsTool } from './pairs-table.js';
export {
  renderReport,
  reportFormats,
  toCsv,
  toJson,
  toMarkdown,
  type ReportFormat,
} from './render.js';
export { caseTitle, environmentLine, gpuLines, reportSummary, summaryLines } from './summary.js';
export { markdownTable } from './markdown.js';
export { narrowestTable, tableLines, type Column } from './table.js';
export type { Tool } from './tool.js';
export { trainTool } from './train-tables.js';
