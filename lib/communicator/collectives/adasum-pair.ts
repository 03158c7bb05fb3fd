// Adasum of two vectors, variable by variable: `(1 - a·b / 2a²) a + (1 - a·b / 2b²) b`.
import type { Floats } from '../../tensor/partial.js';

/** From it on a squared length has all its digits: the square root of the smallest normal float64. */
const tiny = Math.sqrt(2 ** -1022);
/** Two vectors, or the same part of both. */
export interface Pair {
  readonly a: Floats;
  readonly b: Floats;
  /** Where in the whole vectors the parts begin. */
  readonly at: number;
  /** Where in the whole vectors each variable begins, and their end. */
  readonly offsets: readonly number[];
}

/** The elements of a variable that lie in these parts. */
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

/** The variables of which a squared length overflows, or has lost digits, or is 0. */
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

/** What makes the largest magnitude one from 2^-52 to 4, exactly. */
function scaleOf(largest: number): number {
  if (largest === 0 || !Number.isFinite(largest)) return 1;
  return 2 ** -Math.min(Math.max(Math.floor(Math.log2(largest)), -1022), 1022);
}

/** As {@link dotsOf} of these variables, of both vectors scaled. */
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

/** Into one of the two, of variables whose squared lengths have all their digits. */
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

/** The same of the others: `a·b / 2a² a` is as long as b at most, though `a·b / 2a²` may be beyond any number. */
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

/** What all parts of two vectors have, from what each has: their sums, or the largest. */
export type Agree<M> = (
  values: Float64Array,
  fold: (a: number, b: number) => number,
) => Generator<M>;

const add = (a: number, b: number): number => a + b;

/** The two become one, in one of them. */
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

/** How many times as large as the largest element of all ranks an element between the steps is at most. */
export function growthOf(size: number, count: number): number {
  // No step makes vectors more than three times as long, and an element is no larger than its vector is long.
  return 3 ** Math.ceil(Math.log2(size)) * Math.sqrt(count);
}
