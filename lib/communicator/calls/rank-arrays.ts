// The arrays of one rank in a collective: dtype, count, input and output, validated together.
import type { NativeOpName } from '../../collectives.js';
import { argumentError, ruleError } from '../../errors.js';
import type { NativeBuffer, NativeBuffers } from '../../native/communicator.js';
import { allocateLike, dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { allocate, elementBytes, parseDType } from '../../tensor/dtype.js';
import { assertFixedLength, overlap, overlapError } from '../../tensor/memory.js';
import { integer } from '../../checks.js';
import type { Group } from './types.js';
import { assertPlace } from './place.js';

/** Options of all collectives together, not yet validated. */
export interface RawOptions {
  readonly op?: unknown;
  readonly scale?: unknown;
  readonly postscale?: unknown;
  readonly root?: unknown;
  readonly out?: unknown;
  readonly dtype?: string | undefined;
  readonly count?: unknown;
  readonly timeoutMs?: number | undefined;
  readonly name?: string | undefined;
}

/** The input and output of a collective. */
export interface Shape {
  /** Blocks of `count` elements in the input: one, or one for each rank. */
  readonly inAll: boolean;
  readonly outAll: boolean;
  /** Only the root has an input. */
  readonly inAtRoot: boolean;
  readonly outAtRoot: boolean;
  readonly reduces: boolean;
  readonly rooted: boolean;
  /** Without `out`, the result replaces the data; otherwise it is a new array. */
  readonly inPlace: boolean;
}

export interface Arrays {
  readonly dtype: number;
  readonly count: number;
  readonly input: NativeBuffers;
  readonly output: NativeBuffers;
  readonly result: unknown;
}

export interface RankArrays extends Arrays {
  readonly input: NativeBuffer | null;
  readonly output: NativeBuffer | null;
}

/** @param held - index of the rank among those held here */
export function oneRank(
  group: Group,
  held: number,
  op: NativeOpName,
  form: Shape,
  root: number,
  given: unknown,
  givenOut: unknown,
  options: RawOptions,
): RankArrays {
  const { size } = group;
  const rank = group.heldRanks[held]!;
  const isRoot = rank === root;
  const reads = !form.inAtRoot || isRoot;
  const writes = !form.outAtRoot || isRoot;
  const { dtype, data, out, count } = measure(
    group,
    op,
    form,
    given,
    givenOut,
    options,
    reads,
    writes,
  );
  if (data !== undefined) assertPlace(group, held, data, 'data');
  if (out !== undefined) assertPlace(group, held, out, 'out');
  let target = out;
  if (writes && target === undefined) {
    target = form.inPlace ? data : freshArray(data, dtype, form.outAll ? count * size : count);
  }
  if (data !== undefined) assertFixedLength(data, 'data');
  if (target !== undefined && (target !== data || !form.inPlace)) {
    assertFixedLength(target, 'out');
    const block = rank * count * elementBytes[dtype]!;
    if (reads && data !== undefined) assertApart(form, data, target, block);
  }
  return {
    dtype,
    count,
    input: reads && data !== undefined ? storageOf(data) : null,
    output: writes && target !== undefined ? storageOf(target) : null,
    result: writes ? target : undefined,
  };
}

/** dtype, count and arrays of one rank, their lengths checked against each other. */
function measure(
  group: Group,
  op: NativeOpName,
  form: Shape,
  given: unknown,
  givenOut: unknown,
  options: RawOptions,
  reads: boolean,
  writes: boolean,
): { dtype: number; data: AnyArray | undefined; out: AnyArray | undefined; count: number } {
  const { size } = group;
  const wantedOut = writes && op !== 'broadcast' ? (givenOut ?? undefined) : undefined;
  if ((given === undefined || given === null) && op === 'scatter' && !reads) {
    return measureScattered(group, wantedOut, options);
  }
  const dtype = dtypeNumber(given, options.dtype, 'data');
  const data = given as AnyArray;
  let count = data.length;
  if (form.inAll) {
    count = data.length / size;
    if (!Number.isInteger(count)) {
      throw argumentError(
        'ERR_INVALID_ARG_VALUE',
        'data',
        `a length divisible by the ${size} ranks`,
        {
          text: `length ${data.length}`,
        },
      );
    }
  }
  const out = wantedOut === undefined ? undefined : asOut(wantedOut, dtype, options);
  if (out !== undefined) assertLength(out, 'out', form.outAll ? count * size : count);
  return { dtype, data, out, count };
}

function measureScattered(group: Group, givenOut: unknown, options: RawOptions) {
  if (givenOut !== undefined) {
    const dtype = dtypeNumber(givenOut, options.dtype, 'out');
    const out = givenOut as AnyArray;
    return { dtype, data: undefined, out, count: out.length };
  }
  const onGpu = group.gpus.length > 0;
  if (onGpu || options.count === undefined || options.dtype === undefined) {
    const needed = onGpu ? 'out (GPU memory is not allocated)' : 'out, or count and dtype,';
    const rule = `scatter needs ${needed} on a rank that is not the root`;
    throw ruleError('ERR_INVALID_ARG_VALUE', rule);
  }
  const dtype = parseDType(options.dtype);
  const count = integer(options.count, 'count', 0, Number.MAX_SAFE_INTEGER);
  return { dtype, data: undefined, out: allocate(dtype, count) as AnyArray, count };
}

function asOut(value: unknown, dtype: number, options: RawOptions): AnyArray {
  const own = dtypeNumber(value, options.dtype, 'out');
  if (own !== dtype) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'out', 'an array of the type of data', value);
  }
  return value as AnyArray;
}

function assertLength(array: AnyArray, name: string, length: number): void {
  if (array.length !== length) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, `an array of ${length} elements`, {
      text: `${array.length}`,
    });
  }
}

function freshArray(model: AnyArray | undefined, dtype: number, count: number): AnyArray {
  return model === undefined ? allocate(dtype, count) : allocateLike(model, dtype, count);
}

/**
 * Data and out must not overlap, unless they are the same, or one is the rank's own block (at `block` bytes) of the
 * other.
 */
function assertApart(form: Shape, data: AnyArray, out: AnyArray, block: number): void {
  if (!overlap(data, out)) return;
  const together =
    form.inAll && form.outAll
      ? false
      : form.outAll
        ? data.byteOffset === out.byteOffset + block
        : form.inAll
          ? out.byteOffset === data.byteOffset + block
          : out.byteOffset === data.byteOffset;
  if (!together) throw overlapError('out', 'data');
}
