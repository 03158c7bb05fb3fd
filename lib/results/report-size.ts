// Limits of a report's size, so that tables, charts and comparisons finish.
import type { Report } from './result.js';

/** A hundred times a long sweep of collectives. */
const mostCases = 50_000;
/** Each is a column of a table. */
const mostNames = 1000;
/** Cases times columns. */
const mostCells = 2_000_000;
/** A comparison resamples each two thousand times. */
const mostSamples = 2_000_000;

/** What is too large, in words that follow `JSON with `; undefined if nothing is. */
export function tooLarge({ cases }: Pick<Report, 'cases'>): string | undefined {
  if (cases.length > mostCases) return above(cases.length, 'cases', mostCases);
  const names = new Set<string>();
  let samples = 0;
  for (const result of cases) {
    for (const name in result.parameters) names.add(name);
    if (!('samplesSeconds' in result)) continue;
    for (const name in result.values) names.add(`value.${name}`);
    samples += result.samplesSeconds.length;
  }
  if (names.size > mostNames) return above(names.size, 'names of parameters', mostNames);
  const cells = names.size * cases.length;
  if (cells > mostCells) return above(cells, 'figures, cases by names of parameters', mostCells);
  return samples > mostSamples ? above(samples, 'samples', mostSamples) : undefined;
}

function above(count: number, what: string, most: number): string {
  return `${String(count)} ${what}, more than ${String(most)}; take a part of its cases`;
}
