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
} from './bandwidth.js';
export {
  completeCase,
  errorCheck,
  exactCheck,
  failedCase,
  unchecked,
  waivedCase,
  type CaseInput,
  type ExpectedTime,
} from './case.js';
export { describeEnvironment, knownVariables } from './environment.js';
export * from './result.js';
export { parseReport, readReport } from './read-report.js';
export { reportSchema } from './schema.js';
export { describe, medianInterval, percentile } from './statistics.js';
export { judge, type VerdictContext } from './verdict.js';
export * from '../compare/index.js';
export * from '../predict/index.js';
