/** Measuring without the addon: the result type, its schema, statistics, formulas and verdicts. */
export {
  bandwidth,
  collectiveVolume,
  collectives,
  mxnetBandwidth,
  perSecond,
  storeVolume,
  type Collective,
  type Placement,
  type StoreCall,
  type Volume,
} from '../results/bandwidth.js';
export {
  completeCase,
  errorCheck,
  exactCheck,
  failedCase,
  unchecked,
  waivedCase,
  type CaseInput,
  type ExpectedTime,
} from '../results/case.js';
export { describeEnvironment, knownVariables } from '../results/environment.js';
export * from '../results/result.js';
export { parseReport, readReport } from '../results/read-report.js';
export { reportSchema } from '../results/schema.js';
export { describe, medianInterval, percentile } from '../results/statistics.js';
export { judge, type VerdictContext } from '../results/verdict.js';
export * from '../compare/index.js';
export * from '../predict/index.js';
