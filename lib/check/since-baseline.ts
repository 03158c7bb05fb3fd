// Compares parts with those of a baseline, as `gradlink compare` compares runs.
import { compareRuns, figureOf, type NamedRuns } from '../compare/compare.js';
import { identityOf } from '../results/repeats.js';
import {
  hasMeasurement,
  type CaseResult,
  type ReportHead,
  type Verdict,
} from '../results/result.js';
import { bandwidthText, timeText } from '../results/units.js';
import { fair, good, poor } from './part.js';

const confidence = 0.95;

export function timedOf(cases: readonly CaseResult[]): ReadonlySet<string> {
  return new Set(cases.filter(hasMeasurement).filter(figureOf).map(identityOf));
}

/** The verdicts of these parts, by identity. A different environment is no excuse: the change is the likely cause. */
export function sinceBaseline(
  { name, reports }: NamedRuns,
  cases: readonly CaseResult[],
  head: ReportHead,
): ReadonlyMap<string, Verdict> {
  const before = timedOf(reports.flatMap((report) => report.cases));
  const both = new Set([...timedOf(cases)].filter((identity) => before.has(identity)));
  if (both.size === 0) return new Map();
  const among = (of: readonly CaseResult[]): CaseResult[] =>
    of.filter((one) => both.has(identityOf(one)));
  const { cases: compared, environment } = compareRuns(
    { name, reports: reports.map((report) => ({ ...report, cases: among(report.cases) })) },
    { name: 'this run', reports: [{ ...head, cases: among(cases) }] },
    // The intervals of all baseline parts hold together; these are some of them.
    { ignoreEnvironment: true, confidence: 1 - ((1 - confidence) * both.size) / before.size },
  );
  const changed = environment
    .filter(({ decisive }) => decisive)
    .map((one) => `${one.name} was ${one.base}, is ${one.next}`);
  const likelyCause = changed.length === 0 ? null : changed.join('; ');
  const on = `on ${reports[0]!.run.startedAt.slice(0, 10)}`;
  const comparisons = new Map(compared.map((one) => [identityOf(one), one]));
  return new Map(
    among(cases).flatMap((one): [string, Verdict][] => {
      const { change, text, base, next } = comparisons.get(identityOf(one))!;
      if (!hasMeasurement(one) || base === null || next === null) return [];
      const { busBandwidth, statistics } = one;
      const moved = busBandwidth.bytesPerSecond * statistics.medianSeconds;
      const [was, is] = [base, next].map(({ medianSeconds: seconds }) =>
        figureOf(one) === 'latency' ? timeText(seconds) : bandwidthText(moved / seconds),
      );
      const changeText = `was ${was!} ${on}, is ${is!}`;
      if (change !== 'worse') return [[identityOf(one), good(`${changeText} (${name})`)]];
      // Other load lengthens samples, but hardly the fastest.
      const worse = statistics.minSeconds > base.medianSeconds ? poor : fair;
      return [[identityOf(one), worse(`${changeText}: ${text} (${name})`, likelyCause)]];
    }),
  );
}
