// Validates data and counts of collectives with counts, and turns native results into the caller's.
import { argumentError, ruleError } from '../../errors.js';
import type { NativeBuffer, NativeCounted, NativeResult } from '../../native/communicator.js';
import { allocateLike, dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { allocate, arrayOver, dtypeNames, elementBytes, parseDType } from '../../tensor/dtype.js';
import { assertFixedLength, overlap, overlapError } from '../../tensor/memory.js';
import { arrayOf, integer, milliseconds, optionsObject, rankOf } from '../../checks.js';
import { type Call, callOf } from './call.js';
import { assertRanksApart, oneEach } from './collective-call.js';
import type { Counted } from './counted-types.js';
import type { Group } from './types.js';
import { countedNames } from './option-names.js';
import type { CountedOp } from './option-names.js';
import { assertPlace } from './place.js';
import { reduceOpNumber } from './reduce-op.js';

/** Options of all these calls together, not yet validated. */
export interface RawCountedOptions {
  readonly op?: unknown;
  readonly root?: unknown;
  readonly splits?: unknown;
  readonly receiveSplits?: unknown;
  readonly counts?: unknown;
  readonly out?: unknown;
  readonly dtype?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

interface RankCall {
  readonly dtype: number;
  readonly input: NativeBuffer | null;
  readonly sent: Float64Array;
  readonly expected: Float64Array | null;
  readonly out: AnyArray | undefined;
  readonly writes: boolean;
}

/** @param blocking - for the blocking variant */
export function prepareCounted(
  group: Group,
  op: CountedOp,
  data: unknown,
  given: RawCountedOptions | undefined,
  blocking: boolean,
): Call {
  const names = countedNames[op];
  const options = optionsObject(given, blocking ? names.blocking : names.awaited, op);
  const rooted = op === 'gatherV' || op === 'scatterV';
  const root = rooted ? rankOf(options.root, 'root', group.size, 0) : 0;
  const reduceOp = op === 'reduceScatterV' ? reduceOpNumber(options.op) : 0;
  const timeoutMs = milliseconds(options.timeoutMs, 'timeoutMs', -1);
  const ranks = eachRank(group, op, root, data, options);
  const dtype = ranks[0]!.dtype;
  ranks.forEach((one, i) => {
    if (one.dtype === dtype) return;
    const text = `different ones for ranks ${group.heldRanks[0]!} and ${group.heldRanks[i]!}`;
    const expected = 'arrays of one type for all ranks';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'data', expected, { text });
  });
  const input = ranks.map((one) => one.input);
  const output = ranks.map(({ out }) => (out === undefined ? null : storageOf(out)));
  if (ranks.length > 1) assertRanksApart(input, output);
  const finish = (got: NativeResult): unknown => {
    const { counts, made } = got as NativeCounted;
    const results = ranks.map((one, i) =>
      one.writes
        ? resultOf(
            dtype,
            one.out,
            made[i] ?? null,
            counts.slice(i * group.size, (i + 1) * group.size),
          )
        : undefined,
    );
    if (!group.takesLists) return results[0];
    return op === 'gatherV' ? results[group.heldRanks.indexOf(root)] : results;
  };
  const knows = ranks[0]!.expected !== null;
  const more = {
    sent: joined(ranks.map((one) => one.sent)),
    expected: knows ? joined(ranks.map((one) => one.expected!)) : null,
  };
  return callOf(op, dtype, { input, output, root, timeoutMs, more, finish }, reduceOp);
}

function resultOf(
  dtype: number,
  out: AnyArray | undefined,
  made: ArrayBuffer | null,
  counts: Float64Array,
): Counted<unknown> {
  const length = made === null ? 0 : made.byteLength / elementBytes[dtype]!;
  const data = out ?? (made === null ? allocate(dtype, 0) : arrayOver(dtype, made, length));
  return { data, counts: [...counts] };
}

function joined(lists: readonly Float64Array[]): Float64Array {
  return Float64Array.from(lists.flatMap((list) => [...list]));
}

function eachRank(
  group: Group,
  op: CountedOp,
  root: number,
  data: unknown,
  options: RawCountedOptions,
): RankCall[] {
  const held = group.heldRanks;
  if (!group.takesLists) return [oneRank(group, 0, op, root, data, options.out, options)];
  const atRoot = (value: unknown) => held.map((rank) => (rank === root ? value : undefined));
  const datas = op === 'scatterV' ? atRoot(data) : oneEach(group, data, 'data');
  const listed = options.out === undefined || op === 'gatherV';
  const outs = listed ? atRoot(options.out) : oneEach(group, options.out, 'out');
  const splits = op === 'allToAllV' ? listEach(group, options.splits, 'splits') : [];
  const receives =
    options.receiveSplits === undefined
      ? []
      : listEach(group, options.receiveSplits, 'receiveSplits');
  // Only the root's type tells the dtype.
  const dtype = op === 'scatterV' ? (options.dtype ?? typeName(data)) : options.dtype;
  return held.map((_, i) => {
    const own = { ...options, dtype, splits: splits[i], receiveSplits: receives[i] };
    return oneRank(group, i, op, root, datas[i], outs[i], own);
  });
}

function typeName(data: unknown): string | undefined {
  return dtypeNames[dtypeNumber(data, undefined, 'data')];
}

function listEach(group: Group, given: unknown, name: string): readonly unknown[] {
  const { length } = group.heldRanks;
  const expected = `an array of ${length} arrays of counts, one for each rank`;
  const lists = arrayOf(given, name, expected);
  if (lists.length === length) return lists;
  throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, given);
}

function oneRank(
  group: Group,
  held: number,
  op: CountedOp,
  root: number,
  given: unknown,
  givenOut: unknown,
  options: RawCountedOptions,
): RankCall {
  const rank = group.heldRanks[held]!;
  const reads = op !== 'scatterV' || rank === root;
  const writes = op !== 'gatherV' || rank === root;
  const out = writes ? (givenOut ?? undefined) : undefined;
  const data = reads ? (given as AnyArray) : undefined;
  const dtype = typeOf(data, reads, out, options);
  if (data !== undefined) {
    assertPlace(group, held, data, 'data');
    assertFixedLength(data, 'data');
  }
  const sent = sentBy(group, op, root, data, options);
  const expected = expectedBy(group, op, writes, options);
  let target: AnyArray | undefined;
  if (out !== undefined) {
    if (dtypeNumber(out, options.dtype, 'out') !== dtype) {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'out', 'an array of the type of data', out);
    }
    target = out as AnyArray;
    assertPlace(group, held, target, 'out');
    assertFixedLength(target, 'out');
    if (data !== undefined && overlap(target, data)) throw overlapError('out', 'data');
  } else if (writes && group.gpus.length > 0) {
    target = onGpu(op, rank, data, dtype, sent, expected);
  }
  const input = data === undefined ? null : storageOf(data);
  return { dtype, input, sent, expected, out: target, writes };
}

function typeOf(
  data: AnyArray | undefined,
  reads: boolean,
  out: unknown,
  options: RawCountedOptions,
): number {
  if (reads) return dtypeNumber(data, options.dtype, 'data');
  if (out !== undefined) return dtypeNumber(out, options.dtype, 'out');
  if (options.dtype !== undefined) return parseDType(options.dtype);
  const rule = 'scatterV needs out or dtype on a rank that is not the root';
  throw ruleError('ERR_INVALID_ARG_VALUE', rule);
}

/** GPUs cannot allocate within a call, so the counts must be known. */
function onGpu(
  op: CountedOp,
  rank: number,
  data: AnyArray | undefined,
  dtype: number,
  sent: Float64Array,
  expected: Float64Array | null,
): AnyArray {
  const sum = (counts: Float64Array) => counts.reduce((all, count) => all + count, 0);
  if (data !== undefined) {
    if (op === 'reduceScatterV' || op === 'scatterV') return allocateLike(data, dtype, sent[rank]!);
    if (expected !== null) return allocateLike(data, dtype, sum(expected));
  }
  const counts = op === 'allToAllV' ? 'receiveSplits' : 'counts';
  const wanted = op === 'scatterV' ? 'an array' : `an array, or ${counts} that say how much comes`;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'out', `${wanted} where ranks are GPUs`, undefined);
}

function sentBy(
  group: Group,
  op: CountedOp,
  root: number,
  data: AnyArray | undefined,
  options: RawCountedOptions,
): Float64Array {
  const sent = new Float64Array(group.size);
  if (data === undefined) return sent;
  const { length } = data;
  switch (op) {
    case 'allGatherV':
      return sent.fill(length);
    case 'gatherV':
      sent[root] = length;
      return sent;
    case 'allToAllV':
      return wholeOf(group, options.splits, 'splits', length);
    case 'scatterV':
      return wholeOf(group, options.counts, 'counts', length);
    case 'reduceScatterV':
      if (options.counts !== undefined) return wholeOf(group, options.counts, 'counts', length);
      return sent.map(
        (_, r) => Math.floor(length / group.size) + (r < length % group.size ? 1 : 0),
      );
  }
}

function expectedBy(
  group: Group,
  op: CountedOp,
  writes: boolean,
  options: RawCountedOptions,
): Float64Array | null {
  if (op === 'allToAllV') {
    if (options.receiveSplits === undefined) return null;
    return readCounts(group, options.receiveSplits, 'receiveSplits');
  }
  if ((op !== 'allGatherV' && op !== 'gatherV') || options.counts === undefined) return null;
  const counts = readCounts(group, options.counts, 'counts');
  return writes ? counts : counts.fill(0);
}

function wholeOf(group: Group, given: unknown, name: string, length: number): Float64Array {
  const counts = readCounts(group, given, name);
  const sum = counts.reduce((all, count) => all + count, 0);
  if (sum === length) return counts;
  const expected = `counts whose sum is the ${length} elements of data`;
  throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, { text: `a sum of ${sum}` });
}

function readCounts(group: Group, given: unknown, name: string): Float64Array {
  const expected = `an array of ${group.size} counts, one for each rank`;
  const counts = arrayOf(given, name, expected);
  if (counts.length !== group.size) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, given);
  }
  return Float64Array.from(counts, (count, r) =>
    integer(count, `${name}[${r}]`, 0, Number.MAX_SAFE_INTEGER),
  );
}
