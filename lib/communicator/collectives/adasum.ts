// Adasum: what points the same way is averaged, what points apart added up. Ranks are paired, then pairs of ranks, and so
// on: each time halves of the vectors are exchanged, so that each rank works on its part alone (vector halving, distance
// doubling), and in the end the parts come together the same way back.
import { argumentError, ruleError, GradlinkError } from '../../errors.js';
import type { NativeHeldMessage } from '../../native/communicator.js';
import { storageOf } from '../../tensor/any-array.js';
import { dtypeNames, isWeighable } from '../../tensor/dtype.js';
import type { HalfDType, NumericArray } from '../../tensor/dtype.js';
import { assertUsable } from '../../tensor/leases.js';
import { halfTable, toHalf } from '../../tensor/half.js';
import { prepare } from '../calls/collective-call.js';
import type { CollectiveCall } from '../calls/collective-call.js';
import type { Executor } from '../executor.js';
import type { RawOptions } from '../calls/rank-arrays.js';

export const adasum = 'adasum';

/** What is computed with: halves as float32. */
type Working = Float32Array | Float64Array;

/** Below it, a squared length is as good as none: the square root of the smallest normal float64. */
const tiny = Math.sqrt(2 ** -1022);
/** Out of the way of tags that programs count up. */
const tag = 2 ** 20 - 3;

/**
 * a·b, a·a and b·b of each variable.
 *
 * @param at - where in the whole vector these two parts of vectors begin
 * @param offsets - where in it each variable begins, and its end
 */
function dotsOf(a: Working, b: Working, at: number, offsets: readonly number[]): Float64Array {
  const dots = new Float64Array(3 * (offsets.length - 1));
  for (let part = 0; part + 1 < offsets.length; ++part) {
    const end = Math.min(offsets[part + 1]! - at, a.length);
    let both = 0;
    let ofA = 0;
    let ofB = 0;
    for (let i = Math.max(offsets[part]! - at, 0); i < end; ++i) {
      both += a[i]! * b[i]!;
      ofA += a[i]! * a[i]!;
      ofB += b[i]! * b[i]!;
    }
    dots.set([both, ofA, ofB], 3 * part);
  }
  return dots;
}

/** Into one of the two. */
function combine(
  a: Working,
  b: Working,
  into: Working,
  at: number,
  offsets: readonly number[],
  dots = dotsOf(a, b, at, offsets),
): void {
  for (let part = 0; part + 1 < offsets.length; ++part) {
    const both = dots[3 * part]!;
    const ofA = dots[3 * part + 1]!;
    const ofB = dots[3 * part + 2]!;
    const forA = ofA < tiny ? 1 : 1 - both / (2 * ofA);
    const forB = ofB < tiny ? 1 : 1 - both / (2 * ofB);
    const end = Math.min(offsets[part + 1]! - at, a.length);
    for (let i = Math.max(offsets[part]! - at, 0); i < end; ++i) {
      into[i] = forA * a[i]! + forB * b[i]!;
    }
  }
}

function workingCopy(array: NumericArray, dtype: number): Working {
  const stored = storageOf(array);
  if (stored instanceof Float64Array) return stored.slice();
  if (!(stored instanceof Uint16Array)) return (stored as Float32Array).slice();
  const table = halfTable(dtypeNames[dtype] as HalfDType);
  return Float32Array.from(stored, (bits) => table[bits]!);
}

function store(values: Working, into: NumericArray, dtype: number): void {
  const stored = storageOf(into);
  if (stored instanceof Uint16Array) {
    const half = dtypeNames[dtype] as HalfDType;
    for (let i = 0; i < values.length; ++i) stored[i] = toHalf(half, values[i]!);
  } else {
    (stored as Working).set(values);
  }
}

/** What a call with this op is, its arguments checked as those of a sum. */
function prepareAdasum(
  executor: Executor,
  data: unknown,
  options: RawOptions,
  blocking: boolean,
): CollectiveCall {
  if (executor.gpus.length > 0) {
    const message = "allReduce: op 'adasum' is for ranks in the memory of the host";
    throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'allReduce', usable: true });
  }
  if (options.scale !== undefined || options.postscale !== undefined) {
    const name = options.scale === undefined ? 'postscale' : 'scale';
    throw ruleError('ERR_INVALID_ARG_VALUE', `${name} cannot be combined with op 'adasum'`);
  }
  const call = prepare(executor, 'allReduce', data, { ...options, op: 'sum' }, blocking);
  const dtype = dtypeOf(call);
  if (isWeighable(dtype)) return call;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'data', "floats with op 'adasum'", {
    text: dtypeNames[dtype]!,
  });
}

const dtypeOf = (call: CollectiveCall): number => (call.code >> 8) & 0xff;
const listed = (buffers: CollectiveCall['input']): readonly NumericArray[] =>
  (Array.isArray(buffers) ? buffers : [buffers]) as readonly NumericArray[];

/** Of all ranks of this process, whose vectors are here. */
function adasumHere(call: CollectiveCall): unknown {
  assertUsable(call.op, call.input, call.output);
  const dtype = dtypeOf(call);
  const vectors = listed(call.input).map((one) => workingCopy(one, dtype));
  const folded = largestPower(vectors.length);
  const pair = (a: number, b: number) => {
    combine(vectors[a]!, vectors[b]!, vectors[a]!, 0, [0, call.count]);
  };
  for (let extra = folded; extra < vectors.length; ++extra) pair(extra - folded, extra);
  for (let apart = 1; apart < folded; apart *= 2) {
    for (let rank = 0; rank < folded; rank += 2 * apart) pair(rank, rank + apart);
  }
  for (const out of listed(call.output)) store(vectors[0]!, out, dtype);
  return call.result;
}

const largestPower = (size: number): number => 2 ** Math.floor(Math.log2(size));

/**
 * The all-reduce with this op.
 *
 * @param offsets - where each variable of the data begins, and its end: each is combined by itself. One when absent.
 */
export async function adasumOf(
  executor: Executor,
  data: unknown,
  options: RawOptions & { readonly signal?: AbortSignal | undefined },
  offsets?: readonly number[],
): Promise<unknown> {
  const call = prepareAdasum(executor, data, options, false);
  if (executor.takesLists) return adasumHere(call);
  for (const step of stepsOf(executor, call, offsets)) {
    if ('code' in step) {
      await executor.run(step, options.signal);
      continue;
    }
    const { sends, dtype, data: moved, peer } = step;
    const start = (ticket: number): Promise<unknown> =>
      executor.native[sends ? 'send' : 'receive'](dtype, moved, peer, tag, call.timeoutMs, ticket);
    await executor.submit({ op: call.op, ...endsOf(step), start }, options.signal);
  }
  return call.result;
}

/** {@link adasumOf}, blocking. */
export function adasumSyncOf(
  executor: Executor,
  data: unknown,
  options: RawOptions,
  offsets?: readonly number[],
): unknown {
  const call = prepareAdasum(executor, data, options, true);
  if (executor.takesLists) return adasumHere(call);
  for (const step of stepsOf(executor, call, offsets)) {
    if ('code' in step) {
      executor.runSync(step);
      continue;
    }
    const { sends, dtype, data: moved, peer } = step;
    const { reads, writes } = endsOf(step);
    executor.blocking(call.op, reads, writes, () => {
      executor.native[sends ? 'sendSync' : 'receiveSync'](dtype, moved, peer, tag, call.timeoutMs);
    });
  }
  return call.result;
}

type Message = Omit<NativeHeldMessage, 'held'>;

const endsOf = ({ sends, data }: Message) =>
  sends ? { reads: data, writes: null } : { reads: null, writes: data };

const message = (data: Working, peer: number, sends: boolean): Message => {
  const dtype = dtypeNames.indexOf(data instanceof Float64Array ? 'float64' : 'float32');
  return { sends, dtype, data, peer };
};

/** What one rank among others does, one after the other: nothing more for an empty vector. */
function* stepsOf(
  executor: Executor,
  call: CollectiveCall,
  offsets: readonly number[] = [0, call.count],
): Generator<CollectiveCall | Message> {
  const { size, rank } = executor;
  const dtype = dtypeOf(call);
  // What ranks do not agree on is told as by any collective, before anything moves.
  const told = { timeoutMs: call.timeoutMs < 0 ? undefined : call.timeoutMs };
  const all = prepare(executor, 'allGather', Float64Array.of(call.count, dtype), told, false);
  yield all;
  assertAlike(all.result as Float64Array, call.count, dtype);
  if (call.count === 0) return;

  const mine = workingCopy(call.input as NumericArray, dtype);
  const folded = largestPower(size);
  if (rank >= folded) {
    yield message(mine, rank - folded, true);
    yield message(mine, rank - folded, false);
  } else {
    const extra = rank + folded < size ? mine.slice() : undefined;
    if (extra !== undefined) {
      yield message(extra, rank + folded, false);
      combine(mine, extra, mine, 0, offsets);
    }
    yield* halveAndDouble(mine, rank, folded, offsets);
    if (extra !== undefined) yield message(mine, rank + folded, true);
  }
  store(mine, call.output as NumericArray, dtype);
}

function* halveAndDouble(
  mine: Working,
  rank: number,
  size: number,
  offsets: readonly number[],
): Generator<Message> {
  const ranges: (readonly [number, number])[] = [[0, mine.length]];
  for (let apart = 1; apart < size; apart *= 2) {
    const [low, high] = ranges.at(-1)!;
    const middle = low + Math.floor((high - low) / 2);
    const isLower = (rank & apart) === 0;
    const kept = isLower ? ([low, middle] as const) : ([middle, high] as const);
    const given = isLower ? mine.subarray(middle, high) : mine.subarray(low, middle);
    const own = mine.subarray(...kept);
    const others = own.slice();
    yield* exchange(rank, given, others, rank ^ apart);
    const [a, b] = isLower ? [own, others] : [others, own];
    // The lower ranks' vector is a, for all who have parts of the two: they add up in one order.
    const dots = dotsOf(a, b, kept[0], offsets);
    const theirs = dots.slice();
    for (let step = 1; step <= apart; step *= 2) {
      yield* exchange(rank, dots.slice(), theirs, rank ^ step);
      theirs.forEach((value, i) => (dots[i]! += value));
    }
    combine(a, b, own, kept[0], offsets, dots);
    ranges.push(kept);
  }
  for (let apart = size / 2; apart >= 1; apart /= 2) {
    const [low, high] = ranges.pop()!;
    const [from, to] = ranges.at(-1)!;
    const missing = low === from ? mine.subarray(high, to) : mine.subarray(from, low);
    yield* exchange(rank, mine.subarray(low, high), missing, rank ^ apart);
  }
}

/** A long message waits for its receiver: the lower rank sends first. Of a short vector a part may be empty. */
function* exchange(rank: number, given: Working, taken: Working, peer: number): Generator<Message> {
  const both = [message(given, peer, true), message(taken, peer, false)];
  if (rank > peer) both.reverse();
  for (const one of both) if (one.data.length > 0) yield one;
}

function assertAlike(all: Float64Array, count: number, dtype: number): void {
  const of = (rank: number) => `${all[2 * rank]!} of ${dtypeNames[all[2 * rank + 1]!]!}`;
  for (let rank = 0; rank < all.length / 2; ++rank) {
    if (all[2 * rank] === count && all[2 * rank + 1] === dtype) continue;
    const message = `allReduce: op 'adasum': rank ${rank} brought ${of(rank)}, this one ${count} of ${dtypeNames[dtype]!}. All ranks must bring the same count and type`;
    throw new GradlinkError('ERR_MISMATCH', message, { op: 'allReduce', rank, usable: true });
  }
}
