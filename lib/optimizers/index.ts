// The public optimizers and schedules.
export * from './adam.js';
export * from './adaptive.js';
export { createOptimizer, optimizerNames } from './create.js';
export type { OptimizerName, OptimizerOptionsByName } from './create.js';
export { Optimizer } from './optimizer.js';
export type { OptimizerKey, OptimizerOptions, UpdateOptions } from './optimizer.js';
export {
  CosineScheduler,
  FactorScheduler,
  FunctionScheduler,
  LRScheduler,
  MultiFactorScheduler,
  PolyScheduler,
} from './schedulers.js';
export type {
  CosineSchedulerOptions,
  FactorSchedulerOptions,
  FunctionSchedulerOptions,
  MultiFactorSchedulerOptions,
  PolySchedulerOptions,
  SchedulerOptions,
  WarmupMode,
} from './schedulers.js';
export * from './sgd.js';
