import { mean, medianSorted } from 'simple-statistics';

import { argumentError } from '../errors.js';
import { anAmount, aNumber, listOf } from '../checks.js';
import type { MedianInterval, Statistics } from './result.js';

/**
 * Nearest-rank percentile: the smallest sample such that at least `percent` of all samples are no larger.
 * With fewer than 100 samples the 99th is therefore the maximum.
 *
 * @param sorted samples in ascending order, at least one
 * @param percent in (0, 100]
 */
export function percentile(sorted: readonly number[], percent: number): number {
  samplesOf(sorted, 'sorted');
  if (!(typeof percent === 'number' && percent > 0 && percent <= 100)) {
    throw argumentError('ERR_OUT_OF_RANGE', 'percent', 'a number above 0 and at most 100', percent);
  }
  // Multiplied before dividing: 0.07 * 100 is slightly above 7 and would round up.
  return at(sorted, Math.ceil((percent * sorted.length) / 100) - 1);
}

/**
 * Distribution-free interval of the median: samples number k and n+1-k (counted from 1) enclose the median with
 * probability 1 - 2 P(B < k), B binomial (n, 1/2). Uses the largest k that covers `confidence`. Below six samples no k
 * covers 95 %, so the interval is the whole range with a lower `confidence`.
 *
 * @param sorted samples in ascending order, at least one
 */
export function medianInterval(sorted: readonly number[], confidence = 0.95): MedianInterval {
  samplesOf(sorted, 'sorted');
  if (!(typeof confidence === 'number' && confidence >= 0 && confidence < 1)) {
    throw argumentError('ERR_OUT_OF_RANGE', 'confidence', 'a number from 0 to below 1', confidence);
  }
  const n = sorted.length;
  const tails = lowerTails(n);
  let k = 1;
  while (1 - 2 * (tails[k] ?? 1) >= confidence) k += 1;
  return {
    lowerSeconds: at(sorted, k - 1),
    upperSeconds: at(sorted, n - k),
    confidence: n === 1 ? 0 : 1 - 2 * (tails[k - 1] ?? 0),
  };
}

/**
 * Order statistics of a list of times.
 *
 * @param samplesSeconds finite times of at least one sample, in any order
 * @throws RangeError if there are no samples, or one is negative or not finite
 */
export function describe(samplesSeconds: readonly number[]): Statistics {
  samplesOf(samplesSeconds, 'samplesSeconds');
  secondsEach(samplesSeconds, 'samplesSeconds');
  const sorted = [...samplesSeconds].sort((a, b) => a - b);
  return {
    samples: sorted.length,
    minSeconds: at(sorted, 0),
    medianSeconds: medianSorted(sorted),
    p95Seconds: percentile(sorted, 95),
    p99Seconds: percentile(sorted, 99),
    maxSeconds: at(sorted, sorted.length - 1),
    meanSeconds: mean(sorted),
    medianInterval: medianInterval(sorted),
  };
}

const numbers = listOf(aNumber);
const secondsEach = listOf(anAmount);

function samplesOf(given: unknown, name: string): void {
  numbers(given, name);
  if ((given as readonly number[]).length > 0) return;
  throw argumentError('ERR_OUT_OF_RANGE', name, 'at least one sample', { text: 'none' });
}

/** tails[k - 1] = P(B <= k - 1), B binomial (n, 1/2): the chance that sample k already lies above the median. */
function lowerTails(n: number): number[] {
  const tails: number[] = [];
  // In logarithms, because 0.5^n underflows at n = 1075.
  let logTerm = n * Math.log(0.5);
  let sum = 0;
  for (let i = 0; i <= n / 2; i += 1) {
    sum += Math.exp(logTerm);
    tails.push(sum);
    logTerm += Math.log(n - i) - Math.log(i + 1);
  }
  return tails;
}

function at(values: readonly number[], index: number): number {
  return values[index]!;
}
