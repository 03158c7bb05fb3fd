// Memory of the host that GPUs copy from and to at full speed.
import { native } from '../native/load.js';
import { allocate, arrayOver, elementBytes, parseDType } from '../tensor/dtype.js';
import type { ArrayOf, DType } from '../tensor/dtype.js';
import { shownElements } from '../tensor/memory.js';

/**
 * A zeroed array in page-locked memory of the host. Copies between it and GPUs are faster, and do not hold up a thread;
 * otherwise it is like any other array. Freed when it is collected: the system cannot page it out, so make few and
 * use them again.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver or a GPU; ERR_OUT_OF_MEMORY where the system has no
 *   more to lock.
 */
export function pinnedArray<K extends DType>(dtype: K, count: number): ArrayOf[K] {
  const number = parseDType(dtype);
  const elements = shownElements(count, 'count', elementBytes[number]!);
  if (elements === 0) return allocate(number, 0) as ArrayOf[K];
  const buffer = native().allocPinned(elements * elementBytes[number]!);
  return arrayOver(number, buffer, elements) as ArrayOf[K];
}
