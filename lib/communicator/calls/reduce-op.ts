// Reduce operations as callers name them and as native code numbers them.
import { reduceOps, type ReduceOp } from '../../collectives.js';
import { notOneOf } from '../../checks.js';

export { reduceOps };
export type { ReduceOp };

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
      throw notOneOf(op, 'op', reduceOps);
  }
}
