// Parts beside what is expected of them: by a file, by what was published of such GPUs, by a good day.
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
  /** Where it stands: `all_reduce[0].busGBps`. */
  readonly path: string;
  /** Who says so. */
  readonly source: string;
  readonly quantity: 'bandwidth' | 'latency' | 'count';
  /** Bytes a second, or seconds. */
  readonly value: number;
  /** Shares that a part may fall short of it by: beyond the first it is fair, beyond the second poor. */
  readonly tolerances: readonly [fair: number, poor: number];
  readonly isOf: (one: CaseResult) => boolean;
  /** What is counted; of a bandwidth or a latency the part's own figure counts. */
  readonly count?: (one: Measured, all: readonly CaseResult[]) => number;
}

export interface Expectations {
  /** Of a file. */
  readonly figures?: readonly ExpectedFigure[];
  /** Of a good day. */
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
    // Others measured other machines: more than a fifth below is told, and only twice as much is a fault.
    tolerances: [0.2, 0.4],
    isOf: ({ name, parameters: { between, bytes } }) =>
      name === 'all_reduce' && between === 'gpus' && Number(bytes) >= publishedFrom,
  };
  return [figure];
}

const isOfGpus = ({ name, parameters: { between } }: CaseResult): boolean =>
  between === 'gpus' || copies.includes(name);

/** Small sizes show no bandwidth, whatever is expected. */
const isMeasure = (one: CaseResult, { quantity, isOf }: ExpectedFigure): one is Measured =>
  isOf(one) && hasMeasurement(one) && (quantity !== 'bandwidth' || figureOf(one) === quantity);

function rate(one: Measured, figure: ExpectedFigure, all: readonly CaseResult[]): Verdict {
  const { path, quantity, value, source, tolerances, count } = figure;
  const { medianSeconds, minSeconds } = one.statistics;
  // GPUs work for us alone; what else a host does makes its calls longer, and the fastest counts, as beside its limit.
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

/** The worst counts, and is told first. */
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
 * The parts, each with the worst that its limit and its expectations say. What is wrong, waived, or was not judged beside
 * another part's fault stays as it is, and a poor part keeps its reason. Beside cores that are busy or slow nothing that
 * their host takes is judged by its time.
 *
 * @param head of the run
 * @param before parts of the run that were judged before these
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

/** What was expected, and nothing in the run is measured by: one fair part; none where there is nothing. */
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
  const text = `expected, and not in this run: ${texts.join(', ')}`;
  const likelyCause = 'a part or a size that was not asked for, or is not on this machine';
  const verdict = { level: 'fair', reason: 'expected', text, likelyCause } as const;
  return [partOf({ name: 'expected', parameters: {} }, { samplesSeconds: [0], verdict })];
}
