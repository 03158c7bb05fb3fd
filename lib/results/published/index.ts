/** Tables that others published, for checks of the forecast against them. */
export { bluefog } from './bluefog.js';
export { dlperf } from './dlperf.js';
export { elasticdl, type PublishedTask, type PublishedTasks } from './elasticdl.js';
export type { PublishedCurves, PublishedSeries } from './types.js';
