// Host memory for full-speed copies from and to GPUs.
import { native } from '../native/load.js';
import { allocate, arrayOver, elementBytes, parseDType } from '../tensor/dtype.js';
import type { ArrayOf, DType } from '../tensor/dtype.js';
import { shownElements } from '../tensor/memory.js';

/**
 * A zeroed array in page-locked host memory. Copies between it and GPUs are faster and do not block a thread. Freed by
 * garbage collection. The system cannot page it out, so reuse a few.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver or a GPU; ERR_OUT_OF_MEMORY if the system can lock no
 *   more.
 */
export function pinnedArray<K extends DType>(dtype: K, count: number): ArrayOf[K] {
  const number = parseDType(dtype);
  const elements = shownElements(count, 'count', elementBytes[number]!);
  if (elements === 0) return allocate(number, 0) as ArrayOf[K];
  const buffer = native().allocPinned(elements * elementBytes[number]!);
  return arrayOver(number, buffer, elements) as ArrayOf[K];
}
