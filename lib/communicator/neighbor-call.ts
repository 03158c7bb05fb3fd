// From a caller's weights to what native neighborAllReduce takes.
import { argumentError } from '../errors.js';
import type { NativeBuffer, NativeNeighborhood } from '../native/communicator.js';
import { dtypeNumber, storageOf } from '../tensor/any-array.js';
import type { AnyArray } from '../tensor/any-array.js';
import { deviceDtypes, isWeighable } from '../tensor/dtype.js';
import { assertFixedLength, overlap, overlapError } from '../tensor/memory.js';
import type { Group } from './group.js';
import { assertPlace } from './place.js';
import { milliseconds } from '../validate.js';

/** One neighborAllReduce of the one held rank, ready to run. */
export interface NeighborCall {
  readonly dtype: number;
  readonly data: NativeBuffer;
  readonly out: NativeBuffer;
  readonly count: number;
  readonly neighborhood: NativeNeighborhood;
  readonly timeoutMs: number;
  readonly result: unknown;
}

interface RawNeighborOptions {
  readonly selfWeight?: unknown;
  readonly sources?: unknown;
  readonly destinations?: unknown;
  readonly out?: unknown;
  readonly dtype?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

export function prepareNeighbor(
  group: Group,
  given: unknown,
  options: RawNeighborOptions,
): NeighborCall {
  const dtype = dtypeNumber(given, options.dtype, 'data');
  if (!isWeighable(dtype)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'data', 'an array of floats', {
      text: deviceDtypes[dtype] ?? '',
    });
  }
  const data = given as AnyArray;
  assertPlace(group, 0, data, 'data');
  assertFixedLength(data, 'data');
  let out = data;
  if (options.out !== undefined && options.out !== null) {
    const outType = dtypeNumber(options.out, options.dtype, 'out');
    out = options.out as AnyArray;
    if (outType !== dtype || out.length !== data.length) {
      throw argumentError(
        'ERR_INVALID_ARG_VALUE',
        'out',
        'an array of the type and length of data',
        out,
      );
    }
    assertPlace(group, 0, out, 'out');
    assertFixedLength(out, 'out');
    if (overlap(data, out) && data.byteOffset !== out.byteOffset) throw overlapError('out', 'data');
  }
  const storage = storageOf(data);
  return {
    dtype,
    data: storage,
    out: out === data ? storage : storageOf(out),
    count: data.length,
    neighborhood: readNeighborhood(group, options),
    timeoutMs: milliseconds(options.timeoutMs, 'timeoutMs', -1),
    result: out,
  };
}

function readNeighborhood(group: Group, options: RawNeighborOptions): NativeNeighborhood {
  const selfWeight =
    options.selfWeight === undefined ? 1 : weight(options.selfWeight, 'selfWeight');
  const sources = readWeights(group, options.sources, 'sources');
  const destinations = readWeights(group, options.destinations, 'destinations');
  return {
    selfWeight,
    sourceRanks: sources.ranks,
    sourceWeights: sources.weights,
    destinationRanks: destinations.ranks,
    destinationWeights: destinations.weights,
  };
}

function readWeights(group: Group, given: unknown, name: string) {
  if (typeof given !== 'object' || given === null) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an object of weights by rank', given);
  }
  const entries = Object.entries(given as Record<string, unknown>);
  const ranks = new Int32Array(entries.length);
  const weights = new Float64Array(entries.length);
  entries.forEach(([key, value], i) => {
    const rank = Number(key);
    if (!Number.isInteger(rank) || rank < 0 || rank >= group.size || rank === group.rank) {
      const expected = `ranks from 0 to ${group.size - 1} other than its own ${group.rank}`;
      throw argumentError('ERR_OUT_OF_RANGE', name, expected, key);
    }
    ranks[i] = rank;
    weights[i] = weight(value, `${name}[${rank}]`);
  });
  return { ranks, weights };
}

function weight(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a finite number', value);
  }
  return value;
}
