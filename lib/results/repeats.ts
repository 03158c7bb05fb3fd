// Cases that ran several times: in the cycles of a run, and in runs of one command.
import { groupBy } from './grouping.js';
import type { CaseIdentity, CaseResult } from './result.js';

/** Parameters that say how a case ran, not which it is. */
export const outcomeParameters = ['registration', 'algorithm', 'protocol'] as const;
const outcomes: ReadonlySet<string> = new Set(outcomeParameters);

/** The same for cases that are repeats of one another, in a run or in several. */
export function identityOf({ name, parameters }: CaseIdentity): string {
  const known = Object.entries(parameters).filter(([key]) => !outcomes.has(key));
  return JSON.stringify([name, ...known.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** The cases by {@link identityOf}, in order. */
export function repeatsOf<T extends CaseResult>(cases: readonly T[]): Map<string, T[]> {
  return groupBy(cases, identityOf);
}
