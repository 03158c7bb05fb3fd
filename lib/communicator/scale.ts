// The factors of a scaled sum.
import { GradlinkError, argumentError } from '../errors.js';
import { deviceDtypes, isWeighable } from '../tensor/dtype.js';
import type { Group } from './group.js';

/**
 * One factor for each rank held here; undefined when none was given.
 *
 * @throws GradlinkError ERR_UNSUPPORTED where ranks are not GPUs; TypeError for anything but a sum of floats.
 */
export function scalesOf(
  group: Group,
  op: string,
  dtype: number,
  reduceOp: number,
  given: unknown,
): Float64Array | undefined {
  if (given === undefined) return undefined;
  if (group.gpus.length === 0) {
    const message = `${op}: scale is for ranks that are GPUs; multiply the data before the call`;
    throw new GradlinkError('ERR_UNSUPPORTED', message, { op, usable: true });
  }
  if (reduceOp !== 0) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'op', "'sum' with a scale", { text: 'another' });
  }
  if (!isWeighable(dtype)) {
    const text = deviceDtypes[dtype] ?? '';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'data', 'floats with a scale', { text });
  }
  const held = group.heldRanks.length;
  const list: readonly unknown[] =
    group.holdsAll && Array.isArray(given) ? given : new Array<unknown>(held).fill(given);
  if (list.length !== held || !list.every((one) => Number.isFinite(one))) {
    const expected = group.holdsAll
      ? `a finite number, or an array of ${held}, one for each rank`
      : 'a finite number';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'scale', expected, given);
  }
  return Float64Array.from(list as readonly number[]);
}
