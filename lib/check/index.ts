/** One command that tells whether a machine is healthy, and which part is not. */
export type { BurnInSurroundings } from './burn-in.js';
export { checkTable } from './check-options.js';
export { run, type Surroundings } from './check-run.js';
export { readExpected } from './expect-file.js';
export type { RunAsJob } from './ranks.js';
