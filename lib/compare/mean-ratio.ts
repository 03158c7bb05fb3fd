// The mean ratio of two runs.
import type { ComparedCase, Ratio } from './result.js';

/** The {@link Comparison.ratio} of these cases. */
export function meanRatio(cases: readonly Pick<ComparedCase, 'ratio'>[]): Ratio | null {
  const ratios = cases.flatMap(({ ratio }) => ratio ?? []);
  if (ratios.length === 0) return null;
  const mean = (of: (ratio: Ratio) => number): number =>
    Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(of(ratio)), 0) / ratios.length);
  const missed = ratios.reduce((sum, { confidence }) => sum + (1 - confidence), 0);
  return {
    median: mean(({ median }) => median),
    lower: mean(({ lower }) => lower),
    upper: mean(({ upper }) => upper),
    confidence: 1 - missed,
  };
}
