// Compares parts with expectations: from a file, from published figures of such GPUs, or from a baseline.
import { identityOf } from '../results/repeats.js';
import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type ReportHead,
  type Verdict,
  type VerdictLevel,
} from '../results/result.js';
import { bandwidthText, countText, sidedText, timeText } from '../results/units.js';
import { figureOf, type NamedRuns } from '../compare/compare.js';
import { publishedFrom, publishedOf } from './expected-table.js';
import { copies } from './gpus.js';
import { failedWherePoor, partOf } from './part.js';
import { sinceBaseline, timedOf } from './since-baseline.js';

type Measured = CaseResult & Measurement;

export interface ExpectedFigure {
  /** Its entry: `all_reduce[0].busGBps`. */
  readonly path: string;
  readonly source: string;
  readonly quantity: 'bandwidth' | 'latency' | 'count';
  /** Bytes per second, or seconds. */
  readonly value: number;
  /** Allowed shortfall: beyond the first share a part is fair, beyond the second poor. */
  readonly tolerances: readonly [fair: number, poor: number];
  readonly isOf: (one: CaseResult) => boolean;
  /** The count to compare; without it, the part's own bandwidth or latency. */
  readonly count?: (one: Measured, all: readonly CaseResult[]) => number;
}

export interface Expectations {
  /** From a file. */
  readonly figures?: readonly ExpectedFigure[];
  /** From a baseline. */
  readonly baseline?: NamedRuns | undefined;
}

function publishedFigures({ gpus }: ReportHead): ExpectedFigure[] {
  const published = publishedOf(gpus);
  if (published === undefined) return [];
  const { machine, source, busGBps } = published;
  const figure: ExpectedFigure = {
    path: machine,
    source: `${source}, ${machine}`,
    quantity: 'bandwidth',
    value: busGBps * 1e9,
    // Published figures are of other machines: a fifth less is reported, and only twice that is a fault.
    tolerances: [0.2, 0.4],
    isOf: ({ name, parameters: { between, bytes } }) =>
      name === 'all_reduce' && between === 'gpus' && Number(bytes) >= publishedFrom,
  };
  return [figure];
}

const isOfGpus = ({ name, parameters: { between } }: CaseResult): boolean =>
  between === 'gpus' || copies.includes(name);

/** Small sizes say nothing about bandwidth. */
const isMeasure = (one: CaseResult, { quantity, isOf }: ExpectedFigure): one is Measured =>
  isOf(one) && hasMeasurement(one) && (quantity !== 'bandwidth' || figureOf(one) === quantity);

function rate(one: Measured, figure: ExpectedFigure, all: readonly CaseResult[]): Verdict {
  const { path, quantity, value, source, tolerances, count } = figure;
  const { medianSeconds, minSeconds } = one.statistics;
  // GPUs are ours alone, so the median counts; other load lengthens a host's calls, so the fastest counts, as for its
  // limit.
  const [seconds, best] = isOfGpus(one) ? [medianSeconds, ''] : [minSeconds, ' at best'];
  const rated = (lacking: number, text: string): Verdict => ({
    level: lacking > tolerances[1] ? 'poor' : lacking > tolerances[0] ? 'fair' : 'good',
    text: `${text} (${source})`,
    likelyCause: null,
  });
  const limits = (way: 1 | -1): number[] => tolerances.map((one) => 1 + way * one);
  if (count !== undefined) {
    const found = count(one, all);
    return rated(1 - found / value, `${String(found)} of ${String(value)} ${path.split('.')[0]!}`);
  }
  if (quantity === 'latency') {
    const share = seconds / value;
    return rated(
      share - 1,
      `${timeText(seconds)}${best}, ${sidedText(share, 2, limits(1))} of ${timeText(value)}`,
    );
  }
  const found = (one.busBandwidth.bytesPerSecond * medianSeconds) / seconds;
  const of = `${sidedText(found / value, 2, limits(-1))} of ${String(Number((value / 1e9).toPrecision(6)))}`;
  return rated(1 - found / value, `${bandwidthText(found)}${best}, ${of}`);
}

const order: readonly VerdictLevel[] = ['none', 'good', 'fair', 'poor'];

/** The worse verdict counts and comes first. */
function beside<T extends Measured>(one: T, { level, text, likelyCause }: Verdict): T {
  const { verdict } = one;
  const decides = order.indexOf(level) > order.indexOf(verdict.level);
  const texts = decides && level !== 'good' ? [text, verdict.text] : [verdict.text, text];
  return {
    ...one,
    verdict: {
      ...verdict,
      ...(decides ? { level, reason: 'expected' } : {}),
      text: texts.join('; '),
      likelyCause: verdict.likelyCause ?? likelyCause,
    },
  };
}

/**
 * Gives each part the worse verdict of its limit and its expectations. Wrong, waived and excused parts stay as they
 * are, and a poor part keeps its reason. If cores are busy or slow, times that depend on their host are not judged.
 *
 * @param head the run's head
 * @param before the parts judged before these
 */
export function judgeByExpected(
  cases: readonly CaseResult[],
  head: ReportHead,
  { figures = [], baseline }: Expectations = {},
  before: readonly CaseResult[] = [],
): CaseResult[] {
  const all = [...figures, ...publishedFigures(head)];
  const since = baseline && sinceBaseline(baseline, cases, head);
  const busyHosts = new Set(
    [...before, ...cases]
      .filter((one) => one.name === 'cores' && hasMeasurement(one) && one.verdict.level !== 'good')
      .map(({ parameters: { host } }) => host),
  );
  return cases.map((one) => {
    if (!hasMeasurement(one) || !one.check.passed || one.verdict.reason === 'excused') return one;
    const isQuiet = isOfGpus(one) || !busyHosts.has(one.parameters.host);
    const measures = all.filter(
      (figure) => isMeasure(one, figure) && (isQuiet || figure.count !== undefined),
    );
    const then = isQuiet ? (since?.get(identityOf(one)) ?? []) : [];
    const rated = [...measures.map((figure) => rate(one, figure, cases)), then].flat();
    return failedWherePoor(rated.reduce<Measured>(beside, one));
  });
}

/** One fair part for expectations that no part of the run matches; empty if all match. */
export function unmatched(
  cases: readonly CaseResult[],
  { figures = [], baseline }: Expectations,
): CaseResult[] {
  const alone = figures.filter((figure) => !cases.some((one) => isMeasure(one, figure)));
  const before = timedOf(baseline?.reports.flatMap((report) => report.cases) ?? []);
  const gone = [...before].filter((identity) => !timedOf(cases).has(identity)).length;
  const texts = alone.map(({ path, source }) => `${path} (${source})`);
  if (gone > 0) texts.push(`${countText(gone, 'part')} (${baseline!.name})`);
  if (texts.length === 0) return [];
  const text = `expected but not in this run: ${texts.join(', ')}`;
  const likelyCause = 'a part or size that was not requested, or is not on this machine';
  const verdict = { level: 'fair', reason: 'expected', text, likelyCause } as const;
  return [partOf({ name: 'expected', parameters: {} }, { samplesSeconds: [0], verdict })];
}
