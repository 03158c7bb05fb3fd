/**
 * Methods that minimise the sum of the ranks' losses by averaging with neighbours: `gradlink/decentralised`.
 *
 * @packageDocumentation
 */
import { publish } from '../../caller.js';
import * as entry from './index.js';

export {
  adaptThenCombine,
  adaptWithCombine,
  exactDiffusion,
  extra,
  gradientAllReduce,
  gradientTracking,
} from './combining.js';
export type { CombiningOptions } from './combining.js';
export { pushDiging, pushSumSgd } from './push.js';
export type { PushOptions } from './push.js';
export { windowPut } from './window-put.js';
export type { PutWindow, WindowPutMethodOptions } from './window-put.js';
export type {
  Combine,
  DecentralisedMethod,
  DecentralisedOptions,
  Gradient,
  Vector,
} from './types.js';

publish(entry);
