// What a figure is worth, in a word or a line, so that it agrees with the figures beside it.
import type { Measurement, VerdictLevel } from '../results/result.js';
import { levelOf } from '../results/verdict.js';
import { timeText } from '../results/units.js';

/** The clock and the loop of a limit scatter by so much. */
const mostOfLimit = 1.05;

type Judged = Pick<Measurement, 'limit' | 'verdict'>;

/** Whether there is a limit that a figure is far enough above to need a reason. */
export function isAboveLimit({ limit }: Pick<Measurement, 'limit'>): boolean {
  return limit !== null && limit.ratio > mostOfLimit;
}

/**
 * A verdict's sentence without the share that it begins with, such as `38 % of the copy limit`: up to its next clause.
 * Empty where there is nothing else.
 */
function reasonOf({ verdict }: Judged): string {
  const [, rest = ''] = /^\d[\d.]* % .*?[;:] (.*)$/s.exec(verdict.text) ?? [];
  const words = /^\d[\d.]* % /.test(verdict.text) ? rest : verdict.text;
  return words.split('; ')[0] ?? '';
}

/** Below its limit and not judged: what decides there is no bandwidth. */
function isSmall({ limit, verdict }: Judged): boolean {
  return limit !== null && limit.ratio <= 1 && verdict.text.includes('fixed cost');
}

/** Why a case has no level: alike for all that have one reason. */
export function unjudgedReason(result: Judged): string {
  const reason = reasonOf(result);
  if (reason !== '') return reason;
  return result.limit === null ? 'nothing limits them' : 'their limit says nothing here';
}

/** ` (their limits allow 18.30 us and less)`: of those that are too small; nothing where none is. */
export function smallBounds(results: readonly Judged[]): string {
  const bounds = results.filter(isSmall).map(({ limit }) => limit?.boundSeconds ?? 0);
  if (bounds.length === 0) return '';
  return ` (their limits allow ${timeText(Math.max(...bounds))}${bounds.length > 1 ? ' and less' : ''})`;
}

/** Of a cell: the level, or why there is none though there is a limit. */
export function verdictText(result: Judged): string {
  const { limit, verdict } = result;
  if (verdict.level !== 'none') return verdict.level;
  if (limit === null) return '';
  if (isSmall(result)) return 'too small to judge';
  return limit.ratio > 1 ? 'faster than its limit says' : 'not judged';
}

const meanings: Readonly<Record<VerdictLevel, string>> = {
  good: 'near its limit',
  fair: 'room to gain',
  poor: 'far below its limit',
  none: '',
};

/** Of the answer: the level and what it means, which is not always the share of the limit. */
export function verdictWords(result: Judged): string {
  const { limit, verdict } = result;
  const { level, likelyCause } = verdict;
  if (level === 'none') return verdictText(result);
  if (limit !== null && levelOf(limit.ratio) === level) {
    return `${level}: ${isAboveLimit(result) ? 'above its limit' : meanings[level]}`;
  }
  const clauses = verdict.text.split('; ').slice(1);
  const reason = limit === null ? verdict.text : (clauses.at(-1) ?? likelyCause ?? '');
  return reason === '' ? level : `${level}: ${reason}`;
}

/** `139.7 images/s`. */
export function rateText({
  unit,
  value,
}: {
  readonly unit: string;
  readonly value: number;
}): string {
  return `${String(Number(value.toPrecision(4)))} ${unit}/s`;
}
