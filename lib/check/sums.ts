// All-reduces as parts: compared bit by bit, and with the rate that memory or links allow.
import { figureOf } from '../compare/compare.js';
import { type CaseResult, type Measurement, type Report } from '../results/result.js';
import { percentText, timeText } from '../results/units.js';
import { failedWherePoor } from './part.js';

/** The lower bound of an all-reduce's time. */
export interface SumBound {
  readonly seconds: number;
  /** Its source: `this memory allows`. */
  readonly of: string;
  readonly likelyCause: string | null;
  /** Share of the bound that is good; below `poor` it is bad. */
  readonly good: number;
  readonly poor: number;
}

/** The arguments of a command that runs two sizes. */
export function sumArguments([small, large]: readonly [number, number]): string[] {
  const range = ['-b', String(small), '-e', String(large), '-f', String(large / small)];
  return ['collectives', 'all_reduce', ...range];
}

/**
 * The all-reduces of a report. Large ones are judged by their fastest call, because other load on the machine only
 * makes calls longer.
 *
 * @param between the participants, with their number
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
