import { argumentError } from '../../errors.js';
import { gradientAllReduceMethod, type MethodOptions } from './methods.js';
import { distOptimizers, type TrainingMethod } from './types.js';

/**
 * The method that `config.distOptimizer` names. Collective.
 *
 * @throws TypeError for an unknown name.
 */
export async function createMethod(options: MethodOptions): Promise<TrainingMethod> {
  const { distOptimizer } = options.config;
  if (distOptimizer === 'gradient_allreduce') return gradientAllReduceMethod(options);
  const expected = `one of ${distOptimizers.join(', ')}, kv:TYPE`;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'distOptimizer', expected, distOptimizer);
}
