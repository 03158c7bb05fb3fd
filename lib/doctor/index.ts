/** What this machine has for gradlink, what is missing, and how its parts are linked. */
export { diagnose, topologyOf, type DiagnoseOptions } from './diagnose.js';
export * from './types.js';
export { jobRank } from './hosts/index.js';
