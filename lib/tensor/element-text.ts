// One element as text, exact for its type.
import { arrayOver, dtypeNames, isFloat8, type AnyDType } from './dtype.js';
import { fromFloat8 } from './float8.js';
import { halfTable } from './half.js';

/** Different bits give different texts, except for NaNs. */
export function elementText(dtype: AnyDType, bits: bigint): string {
  const [stored = 0] = arrayOver(dtypeNames.indexOf(dtype), BigUint64Array.of(bits).buffer, 1);
  const value = isFloat8(dtype)
    ? fromFloat8(dtype, Number(stored))
    : dtype === 'float16' || dtype === 'bfloat16'
      ? halfTable(dtype)[Number(stored)]
      : stored;
  return Object.is(value, -0) ? '-0' : String(value);
}
