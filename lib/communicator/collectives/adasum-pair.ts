// Adasum of two vectors, variable by variable: `(1 - a·b / 2a²) a + (1 - a·b / 2b²) b`.
import type { Floats } from '../../tensor/partial.js';

/** Below this a squared length has lost digits: the square root of the smallest normal float64. */
const tiny = Math.sqrt(2 ** -1022);
/** Two vectors, or the same part of both. */
export interface Pair {
  readonly a: Floats;
  readonly b: Floats;
  /** Where the parts begin in the whole vectors. */
  readonly at: number;
  /** Where each variable begins in the whole vectors, and their end. */
  readonly offsets: readonly number[];
}

/** The elements of a variable within these parts. */
function rangeOf({ a, at, offsets }: Pair, variable: number): readonly [number, number] {
  return [
    Math.max(offsets[variable]! - at, 0),
    Math.min(Math.max(offsets[variable + 1]! - at, 0), a.length),
  ];
}

/** a·b, a·a and b·b of each variable. */
function dotsOf(pair: Pair): Float64Array {
  const { a, b, offsets } = pair;
  const dots = new Float64Array(3 * (offsets.length - 1));
  for (let variable = 0; variable + 1 < offsets.length; ++variable) {
    const [begin, end] = rangeOf(pair, variable);
    let both = 0;
    let ofA = 0;
    let ofB = 0;
    for (let i = begin; i < end; ++i) {
      both += a[i]! * b[i]!;
      ofA += a[i]! * a[i]!;
      ofB += b[i]! * b[i]!;
    }
    dots.set([both, ofA, ofB], 3 * variable);
  }
  return dots;
}

/** Variables whose squared length overflows, has lost digits, or is 0. */
function oddOnes(dots: Float64Array): number[] {
  const isOrdinary = (squared: number) => squared >= tiny && squared < Infinity;
  return Array.from({ length: dots.length / 3 }, (_, variable) => variable).filter(
    (variable) => !(isOrdinary(dots[3 * variable + 1]!) && isOrdinary(dots[3 * variable + 2]!)),
  );
}

/** The largest magnitudes in a and in b of these variables. */
function largestOf(pair: Pair, variables: readonly number[]): Float64Array {
  const largest = new Float64Array(2 * variables.length);
  variables.forEach((variable, place) => {
    for (let i = rangeOf(pair, variable)[0]; i < rangeOf(pair, variable)[1]; ++i) {
      largest[2 * place] = Math.max(largest[2 * place]!, Math.abs(pair.a[i]!));
      largest[2 * place + 1] = Math.max(largest[2 * place + 1]!, Math.abs(pair.b[i]!));
    }
  });
  return largest;
}

/** The power of two that brings the largest magnitude between 2^-52 and 4. */
function scaleOf(largest: number): number {
  if (largest === 0 || !Number.isFinite(largest)) return 1;
  return 2 ** -Math.min(Math.max(Math.floor(Math.log2(largest)), -1022), 1022);
}

/** {@link dotsOf} for these variables, with both vectors scaled. */
function scaledDotsOf(
  pair: Pair,
  variables: readonly number[],
  largest: Float64Array,
): Float64Array {
  const dots = new Float64Array(3 * variables.length);
  variables.forEach((variable, place) => {
    const [begin, end] = rangeOf(pair, variable);
    const a = Float64Array.from(pair.a.subarray(begin, end));
    const b = Float64Array.from(pair.b.subarray(begin, end));
    const [forA, forB] = [scaleOf(largest[2 * place]!), scaleOf(largest[2 * place + 1]!)];
    const scaled = {
      a: a.map((value) => value * forA),
      b: b.map((value) => value * forB),
      at: 0,
      offsets: [0, end - begin],
    };
    dots.set(dotsOf(scaled), 3 * place);
  });
  return dots;
}

/** Combines the variables whose squared lengths are exact. */
function combine(pair: Pair, into: Floats, dots: Float64Array, odd: readonly number[]): void {
  const { a, b, offsets } = pair;
  for (let variable = 0; variable + 1 < offsets.length; ++variable) {
    if (odd.includes(variable)) continue;
    const [both, ofA, ofB] = dots.subarray(3 * variable) as unknown as [number, number, number];
    const forA = 1 - both / (2 * ofA);
    const forB = 1 - both / (2 * ofB);
    const [begin, end] = rangeOf(pair, variable);
    for (let i = begin; i < end; ++i) into[i] = forA * a[i]! + forB * b[i]!;
  }
}

/** Combines the others: `a·b / 2a² a` is at most as long as b, though `a·b / 2a²` may overflow. */
function combineScaled(
  { a, b, ...pair }: Pair,
  into: Floats,
  variables: readonly number[],
  largest: Float64Array,
  dots: Float64Array,
): void {
  variables.forEach((variable, place) => {
    const [forA, forB] = [scaleOf(largest[2 * place]!), scaleOf(largest[2 * place + 1]!)];
    const [both, ofA, ofB] = dots.subarray(3 * place) as unknown as [number, number, number];
    const shareA = ofA === 0 ? 0 : both / (2 * ofA);
    const shareB = ofB === 0 ? 0 : both / (2 * ofB);
    const [begin, end] = rangeOf({ a, b, ...pair }, variable);
    for (let i = begin; i < end; ++i) {
      const ownA = a[i]! - (shareA * (a[i]! * forA)) / forB;
      const ownB = b[i]! - (shareB * (b[i]! * forB)) / forA;
      into[i] = ownA + ownB;
    }
  });
}

/** Combines a value of all parts of two vectors: their sum, or the maximum. */
export type Agree<M> = (
  values: Float64Array,
  fold: (a: number, b: number) => number,
) => Generator<M>;

const add = (a: number, b: number): number => a + b;

/** Merges the two vectors into one of them. */
export function* merge<M>(pair: Pair, into: Floats, agree: Agree<M>): Generator<M> {
  const dots = dotsOf(pair);
  yield* agree(dots, add);
  const odd = oddOnes(dots);
  combine(pair, into, dots, odd);
  if (odd.length === 0) return;
  const largest = largestOf(pair, odd);
  yield* agree(largest, Math.max);
  const scaled = scaledDotsOf(pair, odd, largest);
  yield* agree(scaled, add);
  combineScaled(pair, into, odd, largest, scaled);
}

/** The bound of an intermediate element relative to the largest element of all ranks. */
export function growthOf(size: number, count: number): number {
  // A step at most triples a vector's length, and no element exceeds that length.
  return 3 ** Math.ceil(Math.log2(size)) * Math.sqrt(count);
}
