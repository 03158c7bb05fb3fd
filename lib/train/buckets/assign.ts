// PyTorch's two ways of dealing tensors out to buckets.
import { argumentError } from '../../errors.js';
import { anAmount, anInteger, aNumber, aString, having, listOf, orAbsent } from '../../checks.js';

/** One tensor, as far as its bucket depends on it. */
export interface AssignedTensor {
  /** Of its elements. */
  readonly bytes: number;
  /** Tensors of different kinds (element type, device) do not share a bucket. */
  readonly kind?: string | undefined;
  /** A sparse gradient has a bucket of its own. */
  readonly sparse?: boolean | undefined;
}

interface Open {
  indices: number[];
  bytes: number;
  /** Which of the limits this kind has come to. */
  limit: number;
}

const tensorsKind = listOf(having({ bytes: anAmount, kind: orAbsent(aString) }));
const numbersKind = listOf(aNumber);
const amountsKind = listOf(anAmount);

function indicesOf(order: unknown, count: number): void {
  listOf(anInteger(0, count - 1))(order, 'order');
}

/**
 * Closes a bucket behind the tensor that brings it to its limit: it overshoots by less than one tensor, and no tensor
 * is split. Each kind goes through the limits on its own; the last one repeats. This is what PyTorch's native
 * DistributedDataParallel does.
 *
 * @param limits bytes, at least one
 * @param order indices of the tensors in the order to deal them out in; that of the list when absent, and then the
 *   buckets are sorted by their smallest index
 */
export function assignBySize(
  tensors: readonly AssignedTensor[],
  limits: readonly number[],
  order?: readonly number[],
): number[][] {
  tensorsKind(tensors, 'tensors');
  numbersKind(limits, 'limits');
  if (order !== undefined) indicesOf(order, tensors.length);
  if (limits.length === 0 || limits.some((limit) => !(limit > 0))) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'limits', 'at least one number above 0', {
      text: `[${limits.join(', ')}]`,
    });
  }
  const closed: number[][] = [];
  const open = new Map<string, Open>();
  for (const index of order ?? tensors.keys()) {
    const { bytes, kind = '', sparse = false } = tensors[index]!;
    if (sparse) {
      closed.push([index]);
      continue;
    }
    const into = open.get(kind) ?? { indices: [], bytes: 0, limit: 0 };
    open.set(kind, into);
    into.indices.push(index);
    into.bytes += bytes;
    if (into.bytes >= limits[into.limit]!) {
      closed.push(into.indices);
      into.indices = [];
      into.bytes = 0;
      into.limit = Math.min(into.limit + 1, limits.length - 1);
    }
  }
  for (const { indices } of open.values()) if (indices.length > 0) closed.push(indices);
  if (order === undefined) closed.sort((a, b) => Math.min(...a) - Math.min(...b));
  return closed;
}

/**
 * Closes a bucket before the tensor that would overflow it, in the order of the list, as PyTorch's PythonDDP does,
 * whose capacity counts elements.
 *
 * @param capacity of one bucket, in the unit of `sizes`
 * @throws RangeError for a tensor that is larger than a bucket.
 */
export function assignBeforeOverflow(sizes: readonly number[], capacity: number): number[][] {
  amountsKind(sizes, 'sizes');
  anAmount(capacity, 'capacity');
  const buckets: number[][] = [];
  let room = 0;
  sizes.forEach((size, index) => {
    if (size > capacity) {
      const largest = Math.max(...sizes);
      throw argumentError('ERR_OUT_OF_RANGE', 'capacity', `at least ${largest}`, capacity);
    }
    if (size > room) {
      buckets.push([]);
      room = capacity;
    }
    buckets.at(-1)!.push(index);
    room -= size;
  });
  return buckets;
}
