// The results of runs as text.
import { repeatsOf } from '../../results/repeats.js';
import {
  hasMeasurement,
  outcome,
  type CaseResult,
  type Report,
  type VerdictLevel,
} from '../../results/result.js';
import { countText, percentText } from '../../results/units.js';
import { caseNames } from '../case-names.js';
import { mergedRepeats, rangeText, spreadBy, type Measured } from '../repeats.js';
import { caseTitle, commandText, environmentLine, gpuLines, startedText } from '../summary.js';
import { isAboveLimit, smallBounds, unjudgedText } from '../verdict-words.js';
import { groupBy } from '../../results/grouping.js';

/** More cases than this are summarised. */
const mostTold = 12;

/** ` (14 cases, 8 runs of each)`; empty without repeats. */
function repeatedText(cases: Report['cases']): string {
  const repeats = [...repeatsOf(cases).values()].map(({ length }) => length);
  const most = Math.max(0, ...repeats);
  if (most < 2) return '';
  const runs = repeats.every((count) => count === most) ? String(most) : `up to ${String(most)}`;
  return ` (${countText(repeats.length, 'case')}, ${runs} runs of each)`;
}

/** The facts of runs as names with values. */
export function runFacts({
  run,
  environment,
  gpus,
  cases,
}: Report): [name: string, text: string][] {
  const { ok, waived, error } = outcome({ cases });
  const counts = [
    `${String(ok)} ran${repeatedText(cases)}`,
    ...(waived > 0 ? [`${String(waived)} waived`] : []),
    ...(error > 0 ? [`${String(error)} failed`] : []),
  ];
  const variables = Object.entries(environment.variables).map(
    ([name, value]) => `${name}=${value}`,
  );
  return [
    ['command', commandText(run)],
    ['started', startedText(run)],
    ['machine', environmentLine(environment)],
    ...(gpus === undefined ? [] : [['GPUs', gpuLines(gpus).join('; ')] as [string, string]]),
    ...(variables.length === 0 ? [] : [['variables', variables.join(' ')] as [string, string]]),
    ['cases', counts.join(', ')],
  ];
}

/** A remark on one or several cases. */
export interface Remark {
  readonly level: VerdictLevel | 'error' | 'waived';
  /** Whether it needs attention: slow or failed cases, and figures above their limit. */
  readonly wants: boolean;
  readonly text: string;
}

interface Judgement extends Remark {
  /** The medians of the repeats. */
  readonly merged?: Measured;
}

/** The name of each case without the parts common to its name, with sizes as in the tables. */
function titlesOf(groups: readonly (readonly CaseResult[])[]): string[] {
  const cases = groups.map((repeats) => repeats[0]!);
  const { parts } = caseNames(cases);
  return cases.map((result) =>
    typeof result.parameters.flow === 'string'
      ? caseTitle(result)
      : [result.name, ...parts(result)].join(', '),
  );
}

/** ` (34 to 41 % in 8 runs, 3 of them fair)`; empty for one run. */
function rangeWords(repeats: readonly Measured[], level: VerdictLevel): string {
  if (repeats.length < 2) return '';
  const ratios = spreadBy(repeats, ({ limit }) => limit?.ratio);
  const range = ratios === undefined ? '' : `${rangeText(ratios, percentText)} in `;
  const others = groupBy(repeats, ({ verdict }) => verdict.level);
  others.delete(level);
  const levels = [...others].map(
    ([other, like]) =>
      `, ${String(like.length)} of them ${other === 'none' ? 'not judged' : other}`,
  );
  return ` (${range}${String(repeats.length)} runs${levels.join('')})`;
}

function judgedRemark(repeats: readonly Measured[], title: string): Judgement {
  const merged = mergedRepeats(repeats);
  const { level, text, likelyCause } = merged.verdict;
  const cause = likelyCause === null ? '' : `. Likely cause: ${likelyCause}`;
  return {
    level,
    wants: level === 'poor' || level === 'fair' || isAboveLimit(merged),
    text: `${title}: ${text}${rangeWords(repeats, level)}${cause}`,
    merged,
  };
}

/** The judgements of a case: one for all repeats that ran, and one for each reason why others did not. */
function judgements(repeats: readonly CaseResult[], title: string): Judgement[] {
  const ran = repeats.filter(hasMeasurement).filter(({ status }) => status === 'ok');
  const others = repeats.flatMap((one) => (one.status === 'ok' ? [] : [one]));
  const reasons = groupBy(others, ({ status, reason }) => JSON.stringify([status, reason]));
  return [
    ...[...reasons.values()].map((like): Judgement => {
      const { status, reason } = like[0]!;
      const of =
        repeats.length > 1 ? ` (${String(like.length)} of ${String(repeats.length)} runs)` : '';
      return { level: status, wants: status === 'error', text: `${title}: ${reason}${of}` };
    }),
    ...(ran.length === 0 ? [] : [judgedRemark(ran, title)]),
  ];
}

const gravity: Readonly<Record<Remark['level'], number>> = {
  error: 0,
  poor: 1,
  fair: 2,
  waived: 3,
  good: 4,
  none: 5,
};

const plainWords: Readonly<Record<Exclude<Remark['level'], 'none'>, string>> = {
  error: 'failed',
  poor: 'far below what is possible',
  fair: 'with room to gain',
  waived: 'waived',
  good: 'near what is possible',
};

/** The kind of a judgement: those without a level are grouped by reason. */
function kindOf({ level, merged }: Judgement): string {
  if (level !== 'none') return plainWords[level];
  return merged === undefined ? 'not judged' : unjudgedText(merged);
}

/** The number of each kind. */
function kindRemarks(all: readonly Judgement[], cases: number): Remark[] {
  return [...groupBy(all, kindOf)].map(([words, like]): Remark => {
    const { level } = like[0]!;
    const bounds = level === 'none' ? smallBounds(like.flatMap(({ merged }) => merged ?? [])) : '';
    const text = `${String(like.length)} of ${countText(cases, 'case')} ${words}${bounds}`;
    return { level, wants: gravity[level] <= gravity.fair, text };
  });
}

/**
 * Each case once, the worst first. For many cases the number of each kind, then those that need attention.
 *
 * @param cases of a run, or of several that repeat one another
 */
export function remarks({ cases }: Pick<Report, 'cases'>): Remark[] {
  const groups = [...repeatsOf(cases).values()];
  const titles = titlesOf(groups);
  const all = groups
    .flatMap((repeats, index) => judgements(repeats, titles[index]!))
    .sort((a, b) => gravity[a.level] - gravity[b.level]);
  if (all.length <= mostTold) return all;
  const kinds = kindRemarks(all, groups.length);
  const wanting = all.filter(({ wants }) => wants);
  const told = wanting.slice(0, mostTold);
  const left = wanting.length - told.length;
  return [
    ...kinds,
    ...told,
    ...(left > 0
      ? [
          {
            level: 'none',
            wants: true,
            text: `and ${String(left)} more, in the table below`,
          } as const,
        ]
      : []),
  ];
}

/** Formulas of the bandwidths, without repeats. */
export function formulas(reports: readonly Report[]): string[] {
  return [
    ...new Set(
      reports
        .flatMap(({ cases }) => cases.filter(hasMeasurement))
        .flatMap(({ algorithmBandwidth, busBandwidth, limit }) => [
          `Algorithm bandwidth = ${algorithmBandwidth.formula}.`,
          `Bus bandwidth = ${busBandwidth.formula}.`,
          ...(limit === null ? [] : [`Must move: ${limit.formula}.`]),
        ]),
    ),
  ];
}
