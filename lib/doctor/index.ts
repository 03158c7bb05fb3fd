/** What this machine offers gradlink, what is missing, and how its parts are linked. */
export { diagnose, topologyOf, type DiagnoseOptions } from './diagnose.js';
export * from './types.js';
export { jobRank } from './hosts/index.js';
