export { assignBeforeOverflow, assignBySize } from './assign.js';
export type { AssignedTensor } from './assign.js';
export { bucketHooks } from './hooks.js';
export {
  bucketLimits,
  defaultBucketCapBytes,
  defaultFirstBucketBytes,
  elementsOf,
  planBuckets,
  planGiven,
} from './plan.js';
export { GradientReducer } from './reducer.js';
export { reduceModes } from './types.js';
export type {
  AttendOptions,
  BucketHook,
  BucketHookName,
  BucketPlan,
  BucketTimes,
  GradientSpec,
  HalfHook,
  JoinedPasses,
  PassOptions,
  PowerSgdHook,
  ReduceMode,
  ReducerOptions,
  TwoBitHook,
} from './types.js';
