// Adasum: what points the same way is averaged, what points apart added up. Ranks are paired, then pairs of ranks, and so
// on: each time halves of the vectors are exchanged, so that each rank works on its part alone (vector halving, distance
// doubling), and in the end the parts come together the same way back.
import { argumentError, GradlinkError } from '../errors.js';
import type { NativeBuffer } from '../native/communicator.js';
import { storageOf } from '../tensor/any-array.js';
import { dtypeNames, isWeighable } from '../tensor/dtype.js';
import type { HalfDType, NumericArray } from '../tensor/dtype.js';
import { assertUsable } from '../tensor/leases.js';
import { halfTable, toHalf } from '../tensor/half.js';
import { prepare } from './collective-call.js';
import type { CollectiveCall } from './collective-call.js';
import type { Executor } from './executor.js';
import type { RawOptions } from './rank-arrays.js';

export const adasum = 'adasum';

/** What is computed with: halves as float32. */
type Working = Float32Array | Float64Array;

/** Below it, a squared length is as good as none: the square root of the smallest normal float64. */
const tiny = Math.sqrt(2 ** -1022);
/** Out of the way of tags that programs count up. */
const tag = 2 ** 20 - 3;

/** a·b, a·a and b·b. */
type Dots = [number, number, number];

function dotsOf(a: Working, b: Working): Dots {
  let both = 0;
  let ofA = 0;
  let ofB = 0;
  for (let i = 0; i < a.length; ++i) {
    both += a[i]! * b[i]!;
    ofA += a[i]! * a[i]!;
    ofB += b[i]! * b[i]!;
  }
  return [both, ofA, ofB];
}

function combine(a: Working, b: Working, [both, ofA, ofB]: Dots, into: Working): void {
  const forA = ofA < tiny ? 1 : 1 - both / (2 * ofA);
  const forB = ofB < tiny ? 1 : 1 - both / (2 * ofB);
  for (let i = 0; i < a.length; ++i) into[i] = forA * a[i]! + forB * b[i]!;
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
export function prepareAdasum(
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
    const name = 'scale and postscale';
    throw argumentError('ERR_INVALID_ARG_VALUE', name, "none with op 'adasum'", { text: 'some' });
  }
  if (blocking && !executor.takesLists && executor.size > 1) {
    const message = "allReduceSync: op 'adasum' is several steps with other ranks: await allReduce";
    throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'allReduce', usable: true });
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
export function adasumHere(call: CollectiveCall): unknown {
  assertUsable(call.op, call.input, call.output);
  const dtype = dtypeOf(call);
  const vectors = listed(call.input).map((one) => workingCopy(one, dtype));
  const folded = largestPower(vectors.length);
  const pair = (a: number, b: number) => {
    combine(vectors[a]!, vectors[b]!, dotsOf(vectors[a]!, vectors[b]!), vectors[a]!);
  };
  for (let extra = folded; extra < vectors.length; ++extra) pair(extra - folded, extra);
  for (let apart = 1; apart < folded; apart *= 2) {
    for (let rank = 0; rank < folded; rank += 2 * apart) pair(rank, rank + apart);
  }
  for (const out of listed(call.output)) store(vectors[0]!, out, dtype);
  return call.result;
}

const largestPower = (size: number): number => 2 ** Math.floor(Math.log2(size));

/** Of one rank among others. */
export async function adasumOf(
  executor: Executor,
  call: CollectiveCall,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { size, rank } = executor;
  const dtype = dtypeOf(call);
  const input = call.input as NumericArray;
  const output = call.output as NumericArray;
  // What ranks do not agree on is told as by any collective, before anything moves.
  const told = { timeoutMs: call.timeoutMs < 0 ? undefined : call.timeoutMs };
  const asked = Float64Array.of(call.count, dtype);
  const all = prepare(executor, 'allGather', asked, told, false);
  await executor.run(all, signal);
  assertAlike(all.result as Float64Array, call.count, dtype);

  const peers = new Exchanges(executor, call.timeoutMs, signal);
  const mine = workingCopy(input, dtype);
  const folded = largestPower(size);
  if (rank >= folded) {
    await peers.send(mine, rank - folded);
    await peers.receive(mine, rank - folded);
  } else {
    if (rank + folded < size) {
      const extra = mine.slice();
      await peers.receive(extra, rank + folded);
      combine(mine, extra, dotsOf(mine, extra), mine);
    }
    await halveAndDouble(peers, mine, rank, folded);
    if (rank + folded < size) await peers.send(mine, rank + folded);
  }
  store(mine, output, dtype);
  return call.result;
}

async function halveAndDouble(peers: Exchanges, mine: Working, rank: number, size: number) {
  const ranges: (readonly [number, number])[] = [[0, mine.length]];
  for (let apart = 1; apart < size; apart *= 2) {
    const [low, high] = ranges.at(-1)!;
    const middle = low + Math.floor((high - low) / 2);
    const isLower = (rank & apart) === 0;
    const kept = isLower ? ([low, middle] as const) : ([middle, high] as const);
    const given = isLower ? mine.subarray(middle, high) : mine.subarray(low, middle);
    const own = mine.subarray(...kept);
    const others = own.slice();
    await peers.exchange(given, others, rank ^ apart);
    const [a, b] = isLower ? [own, others] : [others, own];
    // The lower ranks' vector is a, for all who have parts of the two: they add up in one order.
    const dots = Float64Array.from(dotsOf(a, b));
    const theirs = new Float64Array(3);
    for (let step = 1; step <= apart; step *= 2) {
      await peers.exchange(dots.slice(), theirs, rank ^ step);
      theirs.forEach((value, i) => (dots[i]! += value));
    }
    combine(a, b, [dots[0]!, dots[1]!, dots[2]!], own);
    ranges.push(kept);
  }
  for (let apart = size / 2; apart >= 1; apart /= 2) {
    const [low, high] = ranges.pop()!;
    const [from, to] = ranges.at(-1)!;
    const missing = low === from ? mine.subarray(high, to) : mine.subarray(from, low);
    await peers.exchange(mine.subarray(low, high), missing, rank ^ apart);
  }
}

function assertAlike(all: Float64Array, count: number, dtype: number): void {
  const of = (rank: number) => `${all[2 * rank]!} of ${dtypeNames[all[2 * rank + 1]!]!}`;
  for (let rank = 0; rank < all.length / 2; ++rank) {
    if (all[2 * rank] === count && all[2 * rank + 1] === dtype) continue;
    const message = `allReduce: op 'adasum': rank ${rank} brought ${of(rank)}, this one ${count} of ${dtypeNames[dtype]!}. All ranks must bring the same count and type`;
    throw new GradlinkError('ERR_MISMATCH', message, { op: 'allReduce', rank, usable: true });
  }
}

/** Messages of one call. */
class Exchanges {
  readonly #float32 = dtypeNames.indexOf('float32');
  readonly #float64 = dtypeNames.indexOf('float64');

  constructor(
    readonly executor: Executor,
    readonly timeoutMs: number,
    readonly signal: AbortSignal | undefined,
  ) {}

  #typeOf(array: NativeBuffer): number {
    return array instanceof Float64Array ? this.#float64 : this.#float32;
  }

  async send(data: Working, to: number): Promise<void> {
    if (data.length === 0) return;
    const { native } = this.executor;
    const start = (ticket: number) =>
      native.send(this.#typeOf(data), data, to, tag, this.timeoutMs, ticket);
    await this.executor.submit({ op: 'allReduce', reads: data, writes: null, start }, this.signal);
  }

  async receive(data: Working, from: number): Promise<void> {
    if (data.length === 0) return;
    const { native } = this.executor;
    const start = (ticket: number) =>
      native.receive(this.#typeOf(data), data, from, tag, this.timeoutMs, ticket);
    await this.executor.submit({ op: 'allReduce', reads: null, writes: data, start }, this.signal);
  }

  /** A long message waits for its receiver: the lower rank sends first. */
  async exchange(given: Working, taken: Working, peer: number): Promise<void> {
    if (this.executor.rank < peer) {
      await this.send(given, peer);
      await this.receive(taken, peer);
    } else {
      await this.receive(taken, peer);
      await this.send(given, peer);
    }
  }
}
