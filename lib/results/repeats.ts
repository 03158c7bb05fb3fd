// Repeated cases: in the cycles of a run, and in several runs of one command.
import { groupBy } from './grouping.js';
import type { CaseIdentity, CaseResult } from './result.js';

/** Parameters that tell how a case ran rather than identify it. */
export const outcomeParameters = ['registration', 'algorithm', 'protocol'] as const;
const outcomes: ReadonlySet<string> = new Set(outcomeParameters);

/** Equal for repeats of the same case, in one or several runs. */
export function identityOf({ name, parameters }: CaseIdentity): string {
  const known = Object.entries(parameters).filter(([key]) => !outcomes.has(key));
  return JSON.stringify([name, ...known.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** The cases by {@link identityOf}, in order. */
export function repeatsOf<T extends CaseResult>(cases: readonly T[]): Map<string, T[]> {
  return groupBy(cases, identityOf);
}
