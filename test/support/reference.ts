// What collectives must give, in plain arithmetic on small integers.
import type { ReduceOp } from '../../lib/communicator/calls/reduce-op.js';
import type { DType } from '../../lib/tensor/dtype.js';
import { signed } from './numbers.js';

/**
 * Inputs that differ by rank and index and whose sums, products and averages over `ranks` are exact in every dtype.
 */
export function input(
  dtype: DType,
  op: ReduceOp,
  rank: number,
  ranks: number,
  length: number,
): number[] {
  const offset = signed.includes(dtype) ? 3 : 0;
  return Array.from({ length }, (_, i) => {
    if (op === 'prod') return ((rank + i) % 2) + 1;
    const value = ((rank * 3 + i) % 7) - offset;
    return op === 'avg' ? value * ranks : value;
  });
}

/** Everybody's values combined, element by element. */
export function reduced(op: ReduceOp, inputs: readonly (readonly number[])[]): number[] {
  return (inputs[0] ?? []).map((_, i) => {
    const column = inputs.map((values) => values[i]!);
    switch (op) {
      case 'sum':
        return column.reduce((a, b) => a + b);
      case 'prod':
        return column.reduce((a, b) => a * b);
      case 'min':
        return Math.min(...column);
      case 'max':
        return Math.max(...column);
      case 'avg':
        return column.reduce((a, b) => a + b) / column.length;
    }
  });
}

/** Block `index` of `count` values. */
export function block(values: readonly number[], index: number, count: number): number[] {
  return values.slice(index * count, (index + 1) * count);
}
