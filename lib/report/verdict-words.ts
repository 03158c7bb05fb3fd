// Verdicts in a word or a line, consistent with the figures beside them.
import type { Measurement, VerdictLevel, VerdictReason } from '../results/result.js';
import { levelOf } from '../results/verdict.js';
import { timeText } from '../results/units.js';

/** The scatter of the clock and of a limit's loop. */
const mostOfLimit = 1.05;

type Judged = Pick<Measurement, 'limit' | 'verdict'>;

/** Whether a figure is far enough above its limit to need a reason. */
export function isAboveLimit({ limit }: Pick<Measurement, 'limit'>): boolean {
  return limit !== null && limit.ratio > mostOfLimit;
}

/** For all cases with this reason. */
const reasons: Readonly<Record<VerdictReason, string>> = {
  'no limit': 'no limit is known',
  'fixed cost':
    'at this size the fixed cost of a call decides, not bandwidth; larger ones are judged',
  'above limit': 'faster than its limit, which does not apply here',
  'host time': "the host's own time, which includes its driver, clocks and other load",
  'none alike': 'there is nothing similar to compare it with',
  comparison: 'measured for comparison',
  'nothing exchanged': 'nothing is exchanged in it',
  scatter: 'its times scatter by more than the effect to detect',
  excused: 'a part that it depends on is at fault and reported there',
  others: 'slower than others of its kind',
  faults: 'links are down, or errors were counted',
  hidden: 'by the share of communication that is hidden',
  expected: 'by what is expected of it',
};

/** `not judged: measured for comparison`: the same for all cases with this reason. */
export function unjudgedText({ verdict: { reason } }: Judged): string {
  return `not judged${reason === undefined ? '' : `: ${reasons[reason]}`}`;
}

/** ` (their limits allow 18.30 us and less)` for figures that are too small; empty if there are none. */
export function smallBounds(results: readonly Judged[]): string {
  const small = results.filter(({ verdict }) => verdict.reason === 'fixed cost');
  const bounds = small.map(({ limit }) => limit?.boundSeconds ?? 0);
  if (bounds.length === 0) return '';
  return ` (their limits allow ${timeText(Math.max(...bounds))}${bounds.length > 1 ? ' and less' : ''})`;
}

/** For a cell: the level, or why there is none in spite of a limit. */
export function verdictText({ limit, verdict: { level, reason } }: Judged): string {
  if (level !== 'none') return level;
  if (limit === null) return '';
  if (reason === 'fixed cost') return 'too small to judge';
  return reason === 'above limit' ? 'faster than its limit says' : 'not judged';
}

const meanings: Readonly<Record<VerdictLevel, string>> = {
  good: 'near its limit',
  fair: 'room to gain',
  poor: 'far below its limit',
  none: '',
};

/** For the answer: the level and its meaning, which is not always the share of the limit. */
export function verdictWords(result: Judged): string {
  const { limit, verdict } = result;
  const { level, reason, text } = verdict;
  if (level === 'none') return verdictText(result);
  if (limit !== null && levelOf(limit.ratio) === level) {
    return `${level}: ${isAboveLimit(result) ? 'above its limit' : meanings[level]}`;
  }
  if (limit === null) return `${level}: ${text}`;
  return reason === undefined ? level : `${level}: ${reasons[reason]}`;
}

export function rateText({
  unit,
  value,
}: {
  readonly unit: string;
  readonly value: number;
}): string {
  return `${String(Number(value.toPrecision(4)))} ${unit}/s`;
}
