// Figures of a case that are told only where they are asked for.
import { standardDeviation } from 'simple-statistics';

import { flag, integer } from '../../checks.js';
import { describe } from '../../results/statistics.js';
import type { NativeTiming } from '../../native/measure.js';

/** What nccl-tests' -I, -K, -C and -S ask for. */
export interface AskedValues {
  /** Least, most and 99th percentile of the samples, and how they vary. */
  readonly perIteration?: boolean;
  /** Samples at the beginning that these leave out. */
  readonly perIterationSkip?: number;
  /** Where ranks are GPUs: the host's time for queueing a call. */
  readonly cpuTime?: boolean;
  /** When the case was measured, in seconds since 1970. */
  readonly timestamps?: boolean;
}

export const askedValueNames = [
  'perIteration',
  'perIterationSkip',
  'cpuTime',
  'timestamps',
] as const;

/**
 * @param samples what a case has
 * @throws TypeError or RangeError for what cannot be asked for
 */
export function checkAsked(asked: AskedValues, samples: number): void {
  for (const name of ['perIteration', 'cpuTime', 'timestamps'] as const) {
    flag(asked[name], name, false);
  }
  integer(asked.perIterationSkip ?? 0, 'perIterationSkip', 0, samples - 1);
}

/** By name, as a report has them; undefined where nothing was asked for. */
export function caseValues(
  asked: AskedValues,
  { seconds, queueingSeconds }: Pick<NativeTiming, 'seconds' | 'queueingSeconds'>,
): Readonly<Record<string, number>> | undefined {
  const values: Record<string, number> = {};
  if (asked.perIteration === true) {
    const kept = [...seconds].slice(asked.perIterationSkip ?? 0);
    const { minSeconds, maxSeconds, p99Seconds, meanSeconds } = describe(kept);
    values.iterationMinSeconds = minSeconds;
    values.iterationMaxSeconds = maxSeconds;
    values.iterationP99Seconds = p99Seconds;
    values.iterationVariationPercent = (100 * standardDeviation(kept)) / meanSeconds;
  }
  if (asked.cpuTime === true && queueingSeconds !== null) values.cpuSeconds = queueingSeconds;
  if (asked.timestamps === true) values.measuredAt = Date.now() / 1e3;
  return Object.keys(values).length === 0 ? undefined : values;
}
