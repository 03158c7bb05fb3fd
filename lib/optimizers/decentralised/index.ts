/**
 * Methods that minimise the sum of the ranks' losses by averaging with neighbours: `gradlink/decentralised`.
 *
 * @packageDocumentation
 */
export {
  adaptThenCombine,
  adaptWithCombine,
  exactDiffusion,
  gradientAllReduce,
  gradientTracking,
  pushDiging,
  windowPut,
} from './methods.js';
export type {
  CombiningOptions,
  PushOptions,
  PutWindow,
  WindowPutMethodOptions,
} from './methods.js';
export type {
  Combine,
  DecentralisedMethod,
  DecentralisedOptions,
  Gradient,
  Vector,
} from './types.js';
