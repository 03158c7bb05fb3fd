// Validates the weights of neighborAllReduce.
import { argumentError, ruleError } from '../../errors.js';
import type { NativeBuffer, NativeNeighborhood } from '../../native/communicator.js';
import { dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { isDeviceBuffer } from '../../tensor/device-buffer.js';
import { dtypeNames, isWeighable } from '../../tensor/dtype.js';
import { assertFixedLength, overlap, overlapError } from '../../tensor/memory.js';
import type { Topology } from '../../topology/topology.js';
import { milliseconds } from '../../checks.js';
import { type Call, callOf } from './call.js';
import type { Group } from './types.js';
import { assertPlace } from './place.js';

interface RawOptions {
  readonly out?: unknown;
  readonly dtype?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Weights as given. */
export interface RawWeights {
  readonly selfWeight?: unknown;
  readonly srcWeights?: unknown;
  readonly dstWeights?: unknown;
  readonly checkTopology?: unknown;
}

/** The graph of calls without weights. */
export interface StaticTopology {
  readonly topology: Topology;
  readonly weighted: boolean;
}

/** One rank's part of a neighborAllReduce or pairGossip. */
export interface RankCall {
  readonly dtype: number;
  readonly data: NativeBuffer;
  readonly out: NativeBuffer;
  readonly count: number;
  readonly result: unknown;
}

/** @param neighborhood - the rank's neighbours and weights */
export function prepareNeighbor(
  group: Group,
  given: unknown,
  options: RawOptions,
  neighborhood: NativeNeighborhood,
): Call {
  const { dtype, data, out, count, result } = oneRank(group, given, options.out, options);
  return callOf('neighborAllReduce', dtype, {
    input: data,
    output: out,
    count,
    more: [neighborhood],
    timeoutMs: milliseconds(options.timeoutMs, 'timeoutMs', -1),
    result,
  });
}

/** Data with weights, and a matching output: the data itself by default. */
export function oneRank(
  group: Group,
  given: unknown,
  givenOut: unknown,
  options: RawOptions,
): RankCall {
  const dtype = dtypeNumber(given, options.dtype, 'data');
  if (!isWeighable(dtype) && (group.gpus.length > 0 || isDeviceBuffer(given))) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'data', 'a DeviceBuffer of floats', {
      text: `${dtypeNames[dtype] ?? ''}, which GPUs cannot weigh: convert it, use allReduce, or copy it to the host, whose ranks take integers`,
    });
  }
  const data = given as AnyArray;
  assertPlace(group, 0, data, 'data');
  assertFixedLength(data, 'data');
  let out = data;
  if (givenOut !== undefined && givenOut !== null) {
    const outType = dtypeNumber(givenOut, options.dtype, 'out');
    out = givenOut as AnyArray;
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
    result: out,
  };
}

/** The rank's neighbourhood, from given weights or the topology. */
export function readNeighborhood(
  group: Group,
  by: StaticTopology,
  given: RawWeights,
): NativeNeighborhood {
  const { selfWeight, srcWeights, dstWeights, checkTopology } = given;
  if (checkTopology !== undefined && typeof checkTopology !== 'boolean') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'checkTopology', 'a boolean', checkTopology);
  }
  const check = checkTopology ?? true;
  if (selfWeight === undefined && srcWeights === undefined && dstWeights === undefined) {
    return { ...byTopology(by, group.rank), check };
  }
  for (const [name, value] of Object.entries({ selfWeight, srcWeights })) {
    if (value !== undefined) continue;
    const rule = `selfWeight and srcWeights must be given together: ${name} is missing`;
    throw ruleError('ERR_INVALID_ARG_TYPE', rule);
  }
  const own = weight(selfWeight, 'selfWeight');
  const sources = readWeights(group, srcWeights, 'srcWeights');
  if (dstWeights !== undefined) {
    const destinations = readWeights(group, dstWeights, 'dstWeights');
    return { ...neighborhood(own, sources, destinations, 1), check };
  }
  const { rank } = group;
  const allowed = by.topology.sources(rank);
  for (const source of sources.keys()) {
    if (allowed.includes(source)) continue;
    const expected = `sources of rank ${rank} in the topology (${allowed.join(', ')})`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'srcWeights', expected, source);
  }
  const all = new Map(allowed.map((source) => [source, sources.get(source) ?? 0]));
  return { ...neighborhood(own, all, ones(by.topology.destinations(rank)), 1), check };
}

function byTopology({ topology, weighted }: StaticTopology, rank: number) {
  const destinations = ones(topology.destinations(rank));
  if (weighted) {
    const { selfWeight, weights } = topology.receiveWeights(rank);
    const sources = Object.entries(weights).map(([from, value]) => [Number(from), value] as const);
    return neighborhood(selfWeight, new Map(sources), destinations, 1);
  }
  const sources = topology.sources(rank);
  return neighborhood(1, ones(sources), destinations, sources.length + 1);
}

const ones = (ranks: readonly number[]) => new Map(ranks.map((rank) => [rank, 1]));

/** The native form. */
export function neighborhood(
  selfWeight: number,
  sources: ReadonlyMap<number, number>,
  destinations: ReadonlyMap<number, number>,
  divisor: number,
): NativeNeighborhood {
  return {
    selfWeight,
    sourceRanks: Int32Array.from(sources.keys()),
    sourceWeights: Float64Array.from(sources.values()),
    destinationRanks: Int32Array.from(destinations.keys()),
    destinationWeights: Float64Array.from(destinations.values()),
    divisor,
    check: true,
  };
}

/** Weights by rank; a list of ranks means 1 for each. */
export function readWeights(group: Group, given: unknown, name: string): Map<number, number> {
  if (typeof given !== 'object' || given === null) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an object of weights by rank', given);
  }
  const entries: [unknown, unknown][] = Array.isArray(given)
    ? Array.from(given as unknown[], (rank) => [rank, 1])
    : Object.entries(given as Record<string, unknown>);
  const weights = new Map<number, number>();
  for (const [key, value] of entries) {
    const rank = otherRank(group, key, name);
    if (weights.has(rank)) {
      throw argumentError('ERR_INVALID_ARG_VALUE', name, 'each rank once', {
        text: `${rank} twice`,
      });
    }
    weights.set(rank, weight(value, `${name}[${rank}]`));
  }
  return weights;
}

/** Another rank than one's own. */
export function otherRank(group: Group, key: unknown, name: string): number {
  const rank = typeof key === 'string' ? Number(key) : key;
  if (
    typeof rank !== 'number' ||
    !Number.isInteger(rank) ||
    rank < 0 ||
    rank >= group.size ||
    rank === group.rank
  ) {
    const expected = `ranks from 0 to ${group.size - 1} other than its own ${group.rank}`;
    throw argumentError('ERR_OUT_OF_RANGE', name, expected, key);
  }
  return rank;
}

export function weight(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a finite number', value);
  }
  return value;
}
