import { notOneOf } from '../../checks.js';
import { broadcastVariables } from '../../train/broadcast.js';
import { gradientAllReduceMethod, type MethodOptions } from './methods.js';
import { storeMethod } from './store-method.js';
import type { TrainingMethod } from './method.js';
import { distOptimizers } from './train-options.js';
import { weightMethod } from './weight-methods.js';

/**
 * Collective. Creates the method of `config.distOptimizer`; all ranks start from rank 0's weights.
 *
 * @throws TypeError for an unknown name.
 */
export async function createMethod(options: MethodOptions): Promise<TrainingMethod> {
  const { distOptimizer } = options.config;
  if (distOptimizer === 'gradient_allreduce') return gradientAllReduceMethod(options);
  await broadcastVariables(options.model, options.communicator);
  if (distOptimizer.startsWith('kv:')) return storeMethod(distOptimizer.slice(3), options);
  const method = await weightMethod(options);
  if (method !== undefined) return method;
  throw notOneOf(distOptimizer, 'distOptimizer', distOptimizers, { more: ', kv:TYPE' });
}
