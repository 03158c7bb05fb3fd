// The ratio of two sets of samples with a bootstrap interval.
import { argumentError } from '../errors.js';
import { aNumber, listOf } from '../checks.js';
import type { Ratio } from './result.js';

/** The samples of each run. */
export type Runs = readonly (readonly number[])[];

const resamples = 2000;
/** Draws at most this many samples: the interval gets slightly wider but takes seconds. */
const mostDrawn = 10_000;

/** A small generator with 32 bits of state (mulberry32): the same seed gives the same interval everywhere. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The quantile `part` of sorted values, linearly interpolated. */
export function quantileOfSorted(sorted: ArrayLike<number>, part: number): number {
  const place = (sorted.length - 1) * part;
  const low = sorted[Math.floor(place)] ?? NaN;
  const high = sorted[Math.ceil(place)] ?? NaN;
  return low + (high - low) * (place - Math.floor(place));
}

/** The median of the runs' own quantiles, so that long runs count once. */
export function quantileOfRuns(runs: Runs, part: number): number {
  const each = runs.map((samples) =>
    quantileOfSorted(
      [...samples].sort((a, b) => a - b),
      part,
    ),
  );
  return quantileOfSorted(
    each.sort((a, b) => a - b),
    0.5,
  );
}

/**
 * One bootstrap median: draws runs, then blocks of adjacent samples within each. Adjacent samples are alike because
 * disturbances last; drawn singly they would look more certain than they are.
 */
function drawMedian(runs: Runs, random: () => number, scratch: Float64Array[]): number {
  const medians = new Float64Array(runs.length);
  for (let i = 0; i < runs.length; i += 1) {
    const chosen = Math.floor(random() * runs.length);
    const samples = runs[chosen]!;
    const drawn = scratch[chosen]!;
    const block = Math.ceil(Math.cbrt(samples.length));
    for (let filled = 0; filled < drawn.length;) {
      const start = Math.floor(random() * samples.length);
      for (let k = 0; k < block && filled < drawn.length; k += 1) {
        drawn[filled] = samples[(start + k) % samples.length]!;
        filled += 1;
      }
    }
    medians[i] = quantileOfSorted(drawn.sort(), 0.5);
  }
  return quantileOfSorted(medians.sort(), 0.5);
}

/** Each run's median relative to that of all; a single run says nothing about the next. */
function runFactors(runs: Runs): number[] {
  const whole = quantileOfRuns(runs, 0.5);
  return runs.map((run) => quantileOfRuns([run], 0.5) / whole);
}

const runsKind = listOf(listOf(aNumber));

/**
 * The ratio of the medians, new by old, with a bootstrap interval. If one side is a single run, the spread of the other
 * side's runs estimates its uncertainty.
 *
 * @param confidence coverage of the interval, in (0, 1)
 * @throws TypeError if a side has no samples, or times that are not positive
 */
export function ratioOfMedians(base: Runs, next: Runs, confidence: number): Ratio {
  for (const [name, runs] of [
    ['base', base],
    ['next', next],
  ] as const) {
    runsKind(runs, name);
    const usable = runs.every((run) => run.length > 0 && run.every((sample) => sample > 0));
    if (runs.length === 0 || !usable) {
      throw argumentError('ERR_INVALID_ARG_VALUE', name, 'runs of samples above zero', runs);
    }
  }
  if (!(typeof confidence === 'number' && confidence > 0 && confidence < 1)) {
    throw argumentError('ERR_OUT_OF_RANGE', 'confidence', 'a number between 0 and 1', confidence);
  }
  const random = generator(resamples);
  const scratchOf = (runs: Runs): Float64Array[] =>
    runs.map((samples) => new Float64Array(Math.min(samples.length, mostDrawn)));
  const [baseScratch, nextScratch] = [scratchOf(base), scratchOf(next)];
  const [baseFactors, nextFactors] = [runFactors(base), runFactors(next)];
  const drawFactor = (own: Runs, others: readonly number[]): number =>
    own.length > 1 ? 1 : others[Math.floor(random() * others.length)]!;
  const ratios = new Float64Array(resamples);
  for (let i = 0; i < resamples; i += 1) {
    const old = drawMedian(base, random, baseScratch) * drawFactor(base, nextFactors);
    ratios[i] = (drawMedian(next, random, nextScratch) * drawFactor(next, baseFactors)) / old;
  }
  ratios.sort();
  const median = quantileOfRuns(next, 0.5) / quantileOfRuns(base, 0.5);
  const tail = (1 - confidence) / 2;
  return {
    median,
    lower: Math.min(quantileOfSorted(ratios, tail), median),
    upper: Math.max(quantileOfSorted(ratios, 1 - tail), median),
    confidence,
  };
}
