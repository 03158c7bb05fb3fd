// What the runs come to, in words.
import {
  hasMeasurement,
  outcome,
  type CaseResult,
  type Report,
  type VerdictLevel,
} from '../../results/result.js';
import { caseNames } from '../case-names.js';
import { caseTitle, commandText, environmentLine, gpuLines, startedText } from '../summary.js';
import { isAboveLimit } from './verdicts.js';

/** More than so many cases are summed up rather than told one by one. */
const mostTold = 12;

/** What was run on what: names with values, for people. */
export function runFacts({
  run,
  environment,
  gpus,
  cases,
}: Report): [name: string, text: string][] {
  const { ok, waived, error } = outcome({ cases });
  const counts = [
    `${String(ok)} ran`,
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

export interface Remark {
  readonly level: VerdictLevel | 'error' | 'waived';
  /** Whether somebody should look at it: at what is slow or failed, and at a figure that its limit does not allow. */
  readonly wants: boolean;
  readonly text: string;
}

/** A case as the words name it: without what all cases have in common, sizes as in the tables. */
function titlesOf(cases: readonly CaseResult[]): (result: CaseResult) => string {
  const { parts } = caseNames(cases);
  return (result) =>
    typeof result.parameters.flow === 'string'
      ? caseTitle(result)
      : [result.name, ...parts(result)].join(', ');
}

function remarkOf(result: CaseResult, title: string): Remark {
  if (result.status !== 'ok') {
    const { status, reason } = result;
    return { level: status, wants: status === 'error', text: `${title}: ${reason}` };
  }
  const { level, text, likelyCause } = result.verdict;
  return {
    level,
    wants: level === 'poor' || level === 'fair' || isAboveLimit(result),
    text: `${title}: ${text}${likelyCause === null ? '' : `. Likely cause: ${likelyCause}`}`,
  };
}

const gravity: Readonly<Record<Remark['level'], number>> = {
  error: 0,
  poor: 1,
  fair: 2,
  waived: 3,
  good: 4,
  none: 5,
};

const plainWords: Readonly<Record<Remark['level'], string>> = {
  error: 'failed',
  poor: 'far below what is possible',
  fair: 'with room to gain',
  waived: 'waived',
  good: 'near what is possible',
  none: 'not judged: too small for a bandwidth to decide, or without a limit',
};

/** The worst first. Of many cases: how many there are of each kind, then those that want attention. */
export function remarks({ cases }: Pick<Report, 'cases'>): Remark[] {
  const titleOf = titlesOf(cases);
  const all = cases
    .map((one) => remarkOf(one, titleOf(one)))
    .sort((a, b) => gravity[a.level] - gravity[b.level]);
  if (all.length <= mostTold) return all;
  const kinds = [...new Set(all.map(({ level }) => level))].map((level): Remark => {
    const like = all.filter((one) => one.level === level).length;
    const wants = gravity[level] <= gravity.fair;
    const text = `${String(like)} of ${String(all.length)} cases ${plainWords[level]}`;
    return { level, wants, text };
  });
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

/** Formulas of the bandwidths, each once. */
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
