// The optimizers and schedules that users import.
export { Adam, AdamW, LAMB } from './adam.js';
export type { AdamOptions, AdamWOptions, LAMBOptions } from './adam.js';
export { AdaDelta, AdaGrad, Ftrl, RMSProp } from './adaptive.js';
export type { AdaDeltaOptions, AdaGradOptions, FtrlOptions, RMSPropOptions } from './adaptive.js';
export { createOptimizer, optimizerNames } from './create.js';
export type { OptimizerName, OptimizerOptionsByName } from './create.js';
export { Optimizer } from './optimizer.js';
export type { OptimizerKey, OptimizerOptions } from './optimizer.js';
export {
  CosineScheduler,
  FactorScheduler,
  LRScheduler,
  MultiFactorScheduler,
  PolyScheduler,
} from './schedulers.js';
export type {
  CosineSchedulerOptions,
  FactorSchedulerOptions,
  MultiFactorSchedulerOptions,
  PolySchedulerOptions,
  SchedulerOptions,
  WarmupMode,
} from './schedulers.js';
export { LARS, SGD, Signum, Test } from './sgd.js';
export type { LARSOptions, SGDOptions, SignumOptions } from './sgd.js';
