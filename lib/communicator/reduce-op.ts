import { argumentError } from '../errors.js';

/**
 * How values are combined. Sums and products of integers wrap; `avg` of integers truncates towards zero; `min` and
 * `max` give NaN where any value is NaN. float16 and bfloat16 are combined in float32 and rounded once.
 */
export type ReduceOp = 'sum' | 'prod' | 'min' | 'max' | 'avg';

/** In the order of native/core/kernels/reduce_op.h. */
export const reduceOps = [
  'sum',
  'prod',
  'min',
  'max',
  'avg',
] as const satisfies readonly ReduceOp[];

/** The number that crosses into native code. */
export function reduceOpNumber(op: unknown): number {
  switch (op) {
    case undefined:
    case 'sum':
      return 0;
    case 'prod':
      return 1;
    case 'min':
      return 2;
    case 'max':
      return 3;
    case 'avg':
      return 4;
    default:
      throw argumentError('ERR_INVALID_ARG_VALUE', 'op', `one of ${reduceOps.join(', ')}`, op);
  }
}
