// Optional figures of a case.
import { standardDeviation } from 'simple-statistics';

import type { OptionsOf } from '../../options/table.js';
import { describe } from '../../results/statistics.js';
import type { NativeTiming } from '../../native/measure.js';
import type { collectivesTable } from './collectives-options.js';

/** The figures of nccl-tests' -I, -K, -C and -S. */
export type AskedValues = Pick<
  OptionsOf<typeof collectivesTable>,
  'perIteration' | 'perIterationSkip' | 'cpuTime' | 'timestamps'
>;

/** By name, as in a report; undefined if none was requested. */
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
