/** What a comparison of two sets of runs says. All numbers are finite; what is not known is null. */
import { having, listOf, oneOfWords } from '../checks.js';
import type { CaseIdentity } from '../results/result.js';

/** Version of the JSON layout, as {@link schemaVersion} of reports. */
export const comparisonVersion = 1;

/**
 * - `worse`, `better`: the interval of the ratio lies beyond the tolerance.
 * - `same`: the interval lies within the tolerance.
 * - `unclear`: neither; the samples scatter too much to tell, or only the slower ones moved.
 * - `changed`: would be better or worse, but the runs' environments differ, so nothing follows for the program.
 * - `failed`: ran before, and now ends in an error or a wrong result.
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

/** Of new time by old time: above 1 is slower. */
export interface Ratio {
  /** Of the medians. */
  median: number;
  /** Bootstrap interval of the ratio of medians. */
  lower: number;
  /** The upper end of its interval. */
  upper: number;
  /** Coverage of that interval: of all cases together it is the comparison's. */
  confidence: number;
}

/** One side of a case. */
export interface Side {
  /** That have the case. */
  runs: number;
  /** Of all runs together. */
  samples: number;
  /** Over all samples. */
  medianSeconds: number;
}

export interface ComparedCase extends CaseIdentity {
  /** What the ratio and the threshold say. */
  change: Change;
  /** One sentence. */
  text: string;
  /** What would tell more, where the samples do not tell. */
  advice?: string;
  /** New time by old; null where one of them has none. */
  ratio: Ratio | null;
  /** Null where the old runs lack the case. */
  base: Side | null;
  /** Null where the new runs lack the case. */
  next: Side | null;
}

/** One fact of the environment that is not the same on both sides. */
export interface EnvironmentChange {
  /** `cpuModel`, `variables.NCCL_ALGO`, `gpus.devices`. */
  name: string;
  /** Of the old runs. */
  base: string;
  /** Of the new runs. */
  next: string;
  /** Whether it alone may explain a difference in time. */
  decisive: boolean;
}

/** One side of the comparison. */
export interface RunsInfo {
  /** Files, or the name of a baseline. */
  name: string;
  /** The command that made them. */
  tool: string;
  /** Whose figures they are; absent: gradlink's own. */
  program?: string;
  /** How many there are. */
  runs: number;
  /** Of gradlink. */
  packageVersion: string;
  /** Of the first, in ISO 8601. */
  startedAt: string;
}

/** Two runs beside each other, case by case. */
export interface Comparison {
  /** Rises when a field changes its meaning or goes away. */
  comparisonVersion: typeof comparisonVersion;
  /** The old runs. */
  base: RunsInfo;
  /** The new runs. */
  next: RunsInfo;
  /** Relative difference that is taken for none. */
  tolerance: number;
  /** What differs between their machines. */
  environment: readonly EnvironmentChange[];
  /**
   * The geometric mean over the cases that have a ratio, with that of their bounds as its own; null where none has one.
   * Since the intervals of all cases hold together, it holds as surely.
   */
  ratio: Ratio | null;
  /** Every case that one of them has. */
  cases: readonly ComparedCase[];
}

const comparisonKind = having({ cases: listOf(having({ change: oneOfWords(changes) })) });

/** How many cases came to each change. */
export function countChanges(comparison: Comparison): Readonly<Record<Change, number>> {
  comparisonKind(comparison, 'comparison');
  const counts = Object.fromEntries(changes.map((change) => [change, 0])) as Record<Change, number>;
  for (const { change } of comparison.cases) counts[change] += 1;
  return counts;
}

/** Whether something got worse, or nothing could be compared at all. */
export function hasRegressed(comparison: Comparison): boolean {
  const counts = countChanges(comparison);
  const compared = comparison.cases.some(({ base, next }) => base !== null && next !== null);
  return counts.worse + counts.failed > 0 || !compared;
}
