// Arrays that servers of the host read in place.
import type { NativeKVStore } from '../native/kvstore.js';
import { allocate, arrayOver, elementBytes, parseDType } from '../tensor/dtype.js';
import type { ArrayOf, DType } from '../tensor/dtype.js';
import { shownElements } from '../tensor/memory.js';

/** @param native - a store whose servers read host memory; null: a plain array */
export function allocSharedArray<K extends DType>(
  native: NativeKVStore | null,
  dtype: K,
  count: number,
): ArrayOf[K] {
  const number = parseDType(dtype);
  const elements = shownElements(count, 'count', elementBytes[number]!);
  const bytes = elements * elementBytes[number]!;
  const buffer = bytes === 0 ? null : (native?.allocShared(bytes) ?? null);
  const array = buffer === null ? allocate(number, elements) : arrayOver(number, buffer, elements);
  return array as ArrayOf[K];
}
