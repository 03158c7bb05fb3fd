// The factors of a scaled all-reduce, for input and result.
import { argumentError } from '../../errors.js';
import { dtypeNames, isWeighable } from '../../tensor/dtype.js';
import { finiteNumber } from '../../checks.js';
import { reduceOps } from '../../collectives.js';
import type { Group } from './types.js';

interface RawScales {
  readonly scale?: unknown;
  readonly postscale?: unknown;
}

const sum = 0;
const average = 4;

/**
 * One factor for each rank held here, and one more for the result in host memory: GPUs take both in one. Undefined when
 * none was given.
 *
 * @throws TypeError for anything but sums (on the host also averages) of floats.
 */
export function scalesOf(
  group: Group,
  dtype: number,
  reduceOp: number,
  { scale, postscale }: RawScales,
): Float64Array | undefined {
  if (scale === undefined && postscale === undefined) return undefined;
  const onHost = group.gpus.length === 0;
  if (reduceOp !== sum && !(onHost && reduceOp === average)) {
    const expected = onHost ? "'sum' or 'avg' with a scale" : "'sum' with a scale";
    throw argumentError('ERR_INVALID_ARG_VALUE', 'op', expected, reduceOps[reduceOp]);
  }
  if (!isWeighable(dtype)) {
    const text = dtypeNames[dtype] ?? '';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'data', 'floats with a scale', { text });
  }
  const after = postscale === undefined ? 1 : finiteNumber(postscale, 'postscale');
  const before =
    scale === undefined ? new Array<number>(group.heldRanks.length).fill(1) : listed(group, scale);
  return Float64Array.from(onHost ? [...before, after] : before.map((one) => one * after));
}

function listed(group: Group, given: unknown): readonly number[] {
  const held = group.heldRanks.length;
  const list: readonly unknown[] =
    group.takesLists && Array.isArray(given) ? given : new Array<unknown>(held).fill(given);
  if (list.length !== held || !list.every((one) => Number.isFinite(one))) {
    const expected = group.takesLists
      ? `a finite number, or an array of ${held}, one for each rank`
      : 'a finite number';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'scale', expected, given);
  }
  return list as readonly number[];
}
