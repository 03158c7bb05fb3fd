// The timeline of training: ranks' communicators write such ones too.
export { Timeline, mergeTimelines, timelineFile, timelineLanes } from '../files/timeline.js';
export type { TimelineArgs, TimelineLane, TimelineOptions } from '../files/timeline.js';
