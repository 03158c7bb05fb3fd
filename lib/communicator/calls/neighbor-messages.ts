// Validates the arguments of neighborAllGather and pairGossip.
import { argumentError, ruleError } from '../../errors.js';
import type { NativeBuffer, NativeGather, NativeGossip } from '../../native/communicator.js';
import { allocateLike, dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { assertFixedLength, overlap, overlapError } from '../../tensor/memory.js';
import type { Topology } from '../../topology/topology.js';
import { integer, milliseconds } from '../../checks.js';
import { type Call, callOf } from './call.js';
import { assertRanksApart, oneType } from './collective-call.js';
import type { Group } from './types.js';
import { oneRank, otherRank, weight } from './neighbor-call.js';
import type { RankCall } from './neighbor-call.js';
import { assertPlace } from './place.js';

/** Options of neighborAllGather, not yet validated. */
export interface RawGatherOptions {
  readonly srcRanks?: unknown;
  readonly dstRanks?: unknown;
  readonly srcCounts?: unknown;
  readonly out?: unknown;
  readonly dtype?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

/** One rank's part of a neighborAllGather. */
export interface RankGather {
  readonly dtype: number;
  readonly data: NativeBuffer;
  readonly out: NativeBuffer;
  readonly lists: NativeGather;
  readonly result: unknown;
}

export function gatherOf(
  group: Group,
  topology: Topology,
  given: unknown,
  options: RawGatherOptions,
): RankGather {
  const dtype = dtypeNumber(given, options.dtype, 'data');
  const data = given as AnyArray;
  assertPlace(group, 0, data, 'data');
  assertFixedLength(data, 'data');
  if ((options.srcRanks === undefined) !== (options.dstRanks === undefined)) {
    throw ruleError('ERR_INVALID_ARG_VALUE', 'srcRanks and dstRanks must be given together');
  }
  const sources = rankList(group, options.srcRanks ?? topology.sources(group.rank), 'srcRanks');
  const destinations = rankList(
    group,
    options.dstRanks ?? topology.destinations(group.rank),
    'dstRanks',
  );
  const counts = readCounts(options.srcCounts, sources.length, data.length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  let out: AnyArray;
  if (options.out === undefined) {
    out = allocateLike(data, dtype, total);
  } else {
    const own = dtypeNumber(options.out, options.dtype, 'out');
    out = options.out as AnyArray;
    assertPlace(group, 0, out, 'out');
    assertFixedLength(out, 'out');
    if (own !== dtype || out.length !== total) {
      const expected = `an array of the type of data and of ${total} elements`;
      throw argumentError('ERR_INVALID_ARG_VALUE', 'out', expected, out);
    }
    if (overlap(out, data)) throw overlapError('out', 'data');
  }
  return {
    dtype,
    data: storageOf(data),
    out: storageOf(out),
    lists: { sources, counts, destinations },
    result: out,
  };
}

/** The call of the ranks held here, with the caller's result. */
export function prepareNeighborGather(
  { heldRanks }: Group,
  ranks: readonly RankGather[],
  timeoutMs: number | undefined,
  result: unknown,
): Call {
  return callOf('neighborAllGather', oneType(heldRanks, ranks), {
    ...buffersOf(ranks),
    more: ranks.map(({ lists }) => lists),
    timeoutMs: milliseconds(timeoutMs, 'timeoutMs', -1),
    result,
  });
}

interface Ends {
  readonly dtype: number;
  readonly data: NativeBuffer;
  readonly out: NativeBuffer;
}

/** Arrays of several ranks in one call, which must not overlap. */
function buffersOf(ranks: readonly Ends[]) {
  const input = ranks.map(({ data }) => data);
  const output = ranks.map(({ out }) => out);
  if (ranks.length > 1) assertRanksApart(input, output);
  return { input, output };
}

function rankList(group: Group, given: unknown, name: string): Int32Array {
  if (!Array.isArray(given)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an array of ranks', given);
  }
  const ranks = Array.from(given as unknown[], (rank) => otherRank(group, rank, name));
  if (new Set(ranks).size !== ranks.length) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'each rank once', {
      text: ranks.join(', '),
    });
  }
  return Int32Array.from(ranks);
}

function readCounts(given: unknown, sources: number, length: number): Float64Array {
  if (given === undefined) return new Float64Array(sources).fill(length);
  if (!Array.isArray(given) || given.length !== sources) {
    const expected = `an array of ${sources}, one for each source`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'srcCounts', expected, given);
  }
  return Float64Array.from(given as number[], (count, i) =>
    integer(count, `srcCounts[${i}]`, 0, Number.MAX_SAFE_INTEGER),
  );
}

/** Options of pairGossip, not yet validated. */
export interface RawGossipOptions {
  readonly peer?: unknown;
  readonly selfWeight?: unknown;
  readonly pairWeight?: unknown;
  readonly out?: unknown;
  readonly dtype?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

/** One rank's part of a pairGossip. */
export interface RankGossip extends RankCall {
  readonly pair: NativeGossip;
}

/** @param held - index of the rank among those held here */
export function gossipOf(
  group: Group,
  held: number,
  given: unknown,
  options: RawGossipOptions,
): RankGossip {
  const peer = otherRank(group, options.peer, 'peer');
  const { selfWeight, pairWeight } = options;
  if ((selfWeight === undefined) !== (pairWeight === undefined)) {
    throw ruleError('ERR_INVALID_ARG_VALUE', 'selfWeight and pairWeight must be given together');
  }
  const pair = {
    held,
    peer,
    selfWeight: selfWeight === undefined ? 0.5 : weight(selfWeight, 'selfWeight'),
    pairWeight: pairWeight === undefined ? 0.5 : weight(pairWeight, 'pairWeight'),
  };
  return { ...oneRank(group, given, options.out, options), pair };
}

/** The call of the held ranks that have a peer, with the caller's result. */
export function prepareGossip(
  { heldRanks }: Group,
  ranks: readonly RankGossip[],
  timeoutMs: number | undefined,
  result: unknown,
): Call {
  const named = ranks.map(({ pair }) => heldRanks[pair.held]!);
  return callOf('pairGossip', oneType(named, ranks), {
    ...buffersOf(ranks),
    more: ranks.map(({ pair }) => pair),
    timeoutMs: milliseconds(timeoutMs, 'timeoutMs', -1),
    result,
  });
}
