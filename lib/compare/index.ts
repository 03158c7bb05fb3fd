/** Compares runs: which cases got better or worse. Manages named baselines. */
export { Baselines, type BaselineInfo } from './baselines.js';
export { ratioOfMedians, type Runs } from './bootstrap.js';
export { compareRuns, type CompareOptions, type NamedRuns } from './compare.js';
export { environmentChanges } from './environment.js';
export * from './result.js';
