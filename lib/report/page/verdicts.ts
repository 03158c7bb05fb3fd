// What a figure is worth, in a word or a line.
import type { Measurement, VerdictLevel } from '../../results/result.js';

/** The clock and the loop of a limit scatter by so much. */
const mostOfLimit = 1.05;

/** Whether there is a limit that a figure is far enough above to need a reason. */
export function isAboveLimit({ limit }: Pick<Measurement, 'limit'>): boolean {
  return limit !== null && limit.ratio > mostOfLimit;
}

/** Of a cell: the level, or why there is none though there is a limit. */
export function verdictText({ limit, verdict }: Measurement): string {
  if (verdict.level !== 'none') return verdict.level;
  return limit === null ? '' : 'too small to judge';
}

const meanings: Readonly<Record<VerdictLevel, string>> = {
  good: 'near its limit',
  fair: 'room to gain',
  poor: 'far below its limit',
  none: '',
};

/** Of the answer: the level and what it means. Where nothing limits, the level is of something else. */
export function verdictWords(result: Measurement): string {
  const { level } = result.verdict;
  if (level === 'none' || result.limit === null) return verdictText(result);
  return `${level}: ${meanings[level]}`;
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
