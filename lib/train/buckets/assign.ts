// PyTorch's two ways of assigning tensors to buckets.
import { argumentError } from '../../errors.js';
import { anAmount, anInteger, aNumber, aString, having, listOf, orAbsent } from '../../checks.js';

/** The facts of a tensor that its bucket depends on. */
export interface AssignedTensor {
  /** Size of the tensor. */
  readonly bytes: number;
  /** Tensors of different kinds (element type, device) do not share a bucket. */
  readonly kind?: string | undefined;
  /** A sparse gradient gets its own bucket. */
  readonly sparse?: boolean | undefined;
}

interface Open {
  indices: number[];
  bytes: number;
  /** The index of this kind's current limit. */
  limit: number;
}

const tensorsKind = listOf(having({ bytes: anAmount, kind: orAbsent(aString) }));
const numbersKind = listOf(aNumber);
const amountsKind = listOf(anAmount);

function indicesOf(order: unknown, count: number): void {
  listOf(anInteger(0, count - 1))(order, 'order');
}

/**
 * Closes a bucket after the tensor that reaches its limit, as PyTorch's native DistributedDataParallel does. Buckets
 * exceed the limit by less than one tensor; no tensor is split. Each kind uses the limits in turn; the last one
 * repeats.
 *
 * @param limits bytes, at least one
 * @param order indices of the tensors in assignment order; list order when absent, with buckets then sorted by smallest
 *   index
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
 * Closes a bucket before the tensor that would overflow it, in list order, like PyTorch's PythonDDP, whose capacity is
 * in elements.
 *
 * @param capacity of one bucket, in the unit of `sizes`
 * @throws RangeError for a tensor larger than a bucket.
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
