// Adasum averages vectors as far as they are parallel and adds them as far as they are orthogonal. Ranks combine in
// pairs, then pairs of pairs. Each step exchanges halves, so that each rank works on its part (vector halving, distance
// doubling); the parts return the same way.
import { argumentError, ruleError, GradlinkError } from '../../errors.js';
import { dtypeNames, isWeighable } from '../../tensor/dtype.js';
import type { NumericArray } from '../../tensor/dtype.js';
import { assertUsable } from '../../tensor/leases.js';
import { floatsOf, storeFloats, type Floats } from '../../tensor/partial.js';
import { prepare } from '../calls/collective-call.js';
import { dtypeOf, type Call } from '../calls/call.js';
import { messageOf } from '../calls/message-call.js';
import type { Executor } from '../executor.js';
import type { RawOptions } from '../calls/rank-arrays.js';
import { growthOf, merge, type Agree } from './adasum-pair.js';

export const adasum = 'adasum';

/** Each rank sends its count, type and largest magnitude. */
const facts = 3;
/** Unlikely to collide with tags of programs. */
const tag = 2 ** 20 - 3;

/** An all-reduce with this op; arguments are checked as for a sum. */
function prepareAdasum(
  executor: Executor,
  data: unknown,
  options: RawOptions,
  blocking: boolean,
): Call {
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

/** The largest magnitude; NaN if any value is NaN. */
function largestIn(values: Floats): number {
  let largest = 0;
  for (const value of values) largest = Math.max(largest, Math.abs(value));
  return largest;
}

/**
 * The working copy of a rank's values and its scale. If intermediate vectors may overflow the type though the result
 * does not, a wider type is used, or a smaller scale for the widest one.
 *
 * @param largest - largest magnitude of all ranks' elements
 */
function working(values: Floats, largest: number, size: number): { values: Floats; scale: number } {
  const growth = growthOf(size, values.length);
  const isWide = values instanceof Float64Array;
  if (!(largest * growth > (isWide ? Number.MAX_VALUE : 2 ** 127))) return { values, scale: 1 };
  if (!isWide) return { values: Float64Array.from(values), scale: 1 };
  const scale = 2 ** Math.ceil(Math.log2(growth));
  return { values: values.map((value) => value / scale), scale };
}

const stored = (values: Floats, scale: number): Floats =>
  scale === 1 ? values : values.map((value) => value * scale);

const listed = (buffers: Call['input']): readonly NumericArray[] =>
  (Array.isArray(buffers) ? buffers : [buffers]) as readonly NumericArray[];

function adasumHere(call: Call): unknown {
  assertUsable(call.op, call.input, call.output);
  const dtype = dtypeOf(call);
  const inputs = listed(call.input).map((one) => floatsOf(one, dtype));
  const largest = inputs.map(largestIn).reduce((a, b) => Math.max(a, b), 0);
  const all = inputs.map((one) => working(one, largest, inputs.length));
  const vectors = all.map(({ values }) => values);
  const folded = largestPower(vectors.length);
  const pair = (a: number, b: number) => {
    const whole = { a: vectors[a]!, b: vectors[b]!, at: 0, offsets: [0, call.count] };
    Array.from(merge(whole, vectors[a]!, wholeVectors));
  };
  for (let extra = folded; extra < vectors.length; ++extra) pair(extra - folded, extra);
  for (let apart = 1; apart < folded; apart *= 2) {
    for (let rank = 0; rank < folded; rank += 2 * apart) pair(rank, rank + apart);
  }
  const result = stored(vectors[0]!, all[0]!.scale);
  for (const out of listed(call.output)) storeFloats(result, out, dtype);
  return call.result;
}

/** For vectors held here as a whole. */
function* wholeVectors(): Generator<never> {
  return;
}

const largestPower = (size: number): number => 2 ** Math.floor(Math.log2(size));

/**
 * The all-reduce with this op.
 *
 * @param offsets - where each variable begins, and the end: each is combined separately. One variable when absent.
 */
export async function adasumOf(
  executor: Executor,
  data: unknown,
  options: RawOptions & { readonly signal?: AbortSignal | undefined },
  offsets?: readonly number[],
): Promise<unknown> {
  const call = prepareAdasum(executor, data, options, false);
  if (executor.takesLists) return adasumHere(call);
  for (const step of stepsOf(executor, call, offsets)) await executor.run(step, options.signal);
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
  for (const step of stepsOf(executor, call, offsets)) executor.runSync(step);
  return call.result;
}

/** Part of a vector, sent to or received from another rank. */
interface Message {
  readonly data: Floats;
  readonly peer: number;
  readonly sends: boolean;
}

const message = (data: Floats, peer: number, sends: boolean): Message => ({ data, peer, sends });

/** One rank's calls, in order. */
function* stepsOf(
  executor: Executor,
  call: Call,
  offsets: readonly number[] = [0, call.count],
): Generator<Call> {
  const { op, timeoutMs } = call;
  for (const step of partsOf(executor, call, offsets)) {
    if ('code' in step) {
      yield step;
      continue;
    }
    const { data, peer, sends } = step;
    const dtype = dtypeNames.indexOf(data instanceof Float64Array ? 'float64' : 'float32');
    yield messageOf(op, sends ? 'send' : 'receive', dtype, data, peer, tag, timeoutMs);
  }
}

/** One rank's part after the checks; nothing for an empty vector. */
function* partsOf(
  executor: Executor,
  call: Call,
  offsets: readonly number[],
): Generator<Call | Message> {
  const { size, rank } = executor;
  const dtype = dtypeOf(call);
  // Report mismatches like any collective, before data moves.
  const options = { timeoutMs: call.timeoutMs < 0 ? undefined : call.timeoutMs };
  const input = floatsOf(call.input as NumericArray, dtype);
  const own = Float64Array.of(call.count, dtype, largestIn(input));
  const gather = prepare(executor, 'allGather', own, options, false);
  yield gather;
  const all = gather.result as Float64Array;
  assertAlike(all, call.count, dtype);
  if (call.count === 0) return;

  const largest = all.reduce(
    (most, value, i) => (i % facts === 2 ? Math.max(most, value) : most),
    0,
  );
  const { values: mine, scale } = working(input, largest, size);
  const folded = largestPower(size);
  if (rank >= folded) {
    yield message(mine, rank - folded, true);
    yield message(mine, rank - folded, false);
  } else {
    const extra = rank + folded < size ? mine.slice() : undefined;
    if (extra !== undefined) {
      yield message(extra, rank + folded, false);
      yield* merge({ a: mine, b: extra, at: 0, offsets }, mine, wholeVectors);
    }
    yield* halveAndDouble(mine, rank, folded, offsets);
    if (extra !== undefined) yield message(mine, rank + folded, true);
  }
  storeFloats(stored(mine, scale), call.output as NumericArray, dtype);
}

function* halveAndDouble(
  mine: Floats,
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
    // The lower ranks' vector is a on both sides, so that sums have the same order.
    const agree: Agree<Message> = function* (values, fold) {
      const theirs = values.slice();
      for (let step = 1; step <= apart; step *= 2) {
        yield* exchange(rank, values.slice(), theirs, rank ^ step);
        theirs.forEach((value, i) => (values[i] = fold(values[i]!, value)));
      }
    };
    yield* merge({ a, b, at: kept[0], offsets }, own, agree);
    ranges.push(kept);
  }
  for (let apart = size / 2; apart >= 1; apart /= 2) {
    const [low, high] = ranges.pop()!;
    const [from, to] = ranges.at(-1)!;
    const missing = low === from ? mine.subarray(high, to) : mine.subarray(from, low);
    yield* exchange(rank, mine.subarray(low, high), missing, rank ^ apart);
  }
}

/** A long message waits for its receiver, so the lower rank sends first. A short vector may have empty parts. */
function* exchange(rank: number, given: Floats, taken: Floats, peer: number): Generator<Message> {
  const both = [message(given, peer, true), message(taken, peer, false)];
  if (rank > peer) both.reverse();
  for (const one of both) if (one.data.length > 0) yield one;
}

function assertAlike(all: Float64Array, count: number, dtype: number): void {
  for (let rank = 0; rank < all.length / facts; ++rank) {
    const [theirCount, theirType] = all.subarray(facts * rank) as unknown as [number, number];
    if (theirCount === count && theirType === dtype) continue;
    const theirs = `${theirCount} of ${dtypeNames[theirType]!}`;
    const message = `allReduce: op 'adasum': rank ${rank} brought ${theirs}, this one ${count} of ${dtypeNames[dtype]!}. All ranks must bring the same count and type`;
    throw new GradlinkError('ERR_MISMATCH', message, { op: 'allReduce', rank, usable: true });
  }
}
