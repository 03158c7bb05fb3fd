/** The result of a comparison. All numbers are finite; unknown ones are null. */
import { having, listOf, oneOfWords } from '../checks.js';
import type { CaseIdentity } from '../results/result.js';

/** Version of the JSON layout, as {@link schemaVersion} of reports. */
export const comparisonVersion = 1;

/**
 * - `worse`, `better`: the interval of the ratio lies beyond the tolerance.
 * - `same`: the interval lies within the tolerance.
 * - `unclear`: neither; the samples scatter too much, or only the slower ones moved.
 * - `changed`: would be better or worse, but the environments differ.
 * - `failed`: ran before, and now fails or gives a wrong result.
 * - `mended`: the reverse.
 * - `added`, `missing`: only one side has figures.
 */
export const changes = [
  'worse',
  'failed',
  'changed',
  'unclear',
  'missing',
  'better',
  'mended',
  'added',
  'same',
] as const;
/** How a case differs between two runs. */
export type Change = (typeof changes)[number];

/** New time divided by old time: above 1 is slower. */
export interface Ratio {
  /** The ratio of the medians. */
  median: number;
  /** Lower end of the bootstrap interval. */
  lower: number;
  /** Upper end of the bootstrap interval. */
  upper: number;
  /** Coverage of the interval; the comparison's covers all cases together. */
  confidence: number;
}

/** One side of a case. */
export interface Side {
  /** Runs that have the case. */
  runs: number;
  /** Samples of all runs. */
  samples: number;
  /** Median of all samples. */
  medianSeconds: number;
}

export interface ComparedCase extends CaseIdentity {
  /** The judgement. */
  change: Change;
  /** One sentence. */
  text: string;
  /** How to get a clearer result. */
  advice?: string;
  /** New time divided by old; null if one is missing. */
  ratio: Ratio | null;
  /** Null if the old runs lack the case. */
  base: Side | null;
  /** Null if the new runs lack the case. */
  next: Side | null;
}

/** A fact of the environment that differs between both sides. */
export interface EnvironmentChange {
  /** `cpuModel`, `variables.NCCL_ALGO`, `gpus.devices`. */
  name: string;
  /** The old runs' value. */
  base: string;
  /** The new runs' value. */
  next: string;
  /** Whether it alone may explain a difference in time. */
  decisive: boolean;
}

/** One side of the comparison. */
export interface RunsInfo {
  /** The files or the baseline. */
  name: string;
  /** The command of these runs. */
  tool: string;
  /** The measured program; absent: gradlink itself. */
  program?: string;
  /** Number of runs. */
  runs: number;
  /** gradlink's version. */
  packageVersion: string;
  /** The start of the first run, in ISO 8601. */
  startedAt: string;
}

/** Two runs beside each other, case by case. */
export interface Comparison {
  /** Raised when a field changes its meaning or is removed. */
  comparisonVersion: typeof comparisonVersion;
  /** The old runs. */
  base: RunsInfo;
  /** The new runs. */
  next: RunsInfo;
  /** Relative difference that counts as equal. */
  tolerance: number;
  /** Differences between their machines. */
  environment: readonly EnvironmentChange[];
  /**
   * The geometric mean of all ratios, with that of their bounds as interval; null without ratios. It has the same
   * confidence, since all intervals hold together.
   */
  ratio: Ratio | null;
  /** Every case of either side. */
  cases: readonly ComparedCase[];
}

const comparisonKind = having({ cases: listOf(having({ change: oneOfWords(changes) })) });

/** The number of cases per change. */
export function countChanges(comparison: Comparison): Readonly<Record<Change, number>> {
  comparisonKind(comparison, 'comparison');
  const counts = Object.fromEntries(changes.map((change) => [change, 0])) as Record<Change, number>;
  for (const { change } of comparison.cases) counts[change] += 1;
  return counts;
}

/** Whether a case got worse, or nothing could be compared. */
export function hasRegressed(comparison: Comparison): boolean {
  const counts = countChanges(comparison);
  const compared = comparison.cases.some(({ base, next }) => base !== null && next !== null);
  return counts.worse + counts.failed > 0 || !compared;
}
