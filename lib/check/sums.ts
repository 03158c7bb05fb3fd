// Sums as parts: right to the bit, and as fast as what carries them allows.
import { figureOf } from '../compare/compare.js';
import { type CaseResult, type Measurement, type Report } from '../results/result.js';
import { percentText, timeText } from '../results/units.js';
import { failedWherePoor } from './part.js';

/** What a sum takes at the least. */
export interface SumBound {
  readonly seconds: number;
  /** Whose it is: `this memory allows`. */
  readonly of: string;
  readonly likelyCause: string | null;
  /** Shares of it that are good, and from which on a sum is bad. */
  readonly good: number;
  readonly poor: number;
}

/** The arguments of a command that sums two sizes. */
export function sumArguments([small, large]: readonly [number, number]): string[] {
  const range = ['-b', String(small), '-e', String(large), '-f', String(large / small)];
  return ['collectives', 'all_reduce', ...range];
}

/**
 * The sums of a report. Large ones are judged by their fastest call: what disturbs a call makes it longer, and others are
 * at work on most machines.
 *
 * @param between what is summed over, with so many ranks
 */
export function sumParts(
  { cases }: Pick<Report, 'cases'>,
  between: string,
  ranks: number,
  boundOf: (one: CaseResult & Measurement) => SumBound | undefined,
): CaseResult[] {
  return cases.map((one): CaseResult => {
    const { bytes: size = null, placement = null } = one.parameters;
    const named: CaseResult = { ...one, parameters: { between, ranks, bytes: size, placement } };
    if (named.status !== 'ok') return named;
    const { statistics } = named;
    const bound = figureOf(named) === 'bandwidth' ? boundOf(named) : undefined;
    if (bound === undefined) {
      const text = `${timeText(statistics.medianSeconds)} a call; at this size its fixed cost decides`;
      return { ...named, verdict: { level: 'none', text, likelyCause: null } };
    }
    const ratio = bound.seconds / statistics.minSeconds;
    const level = ratio >= bound.good ? 'good' : ratio >= bound.poor ? 'fair' : 'poor';
    const share = ratio > 1 ? 'more than' : `${percentText(ratio, [bound.good, bound.poor])} of`;
    const text = `${share} what ${bound.of}, at best`;
    const likelyCause = level === 'good' ? null : bound.likelyCause;
    return failedWherePoor({ ...named, verdict: { level, text, likelyCause } });
  });
}
