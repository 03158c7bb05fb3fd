// Reduce operations by name and by native number.
import { reduceOps, type ReduceOp } from '../../collectives.js';
import { notOneOf } from '../../checks.js';

export { reduceOps };
export type { ReduceOp };

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
