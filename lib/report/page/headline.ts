// The answer of a report: for each group of cases the median with its range, its limit and verdict; for two runs the
// changes.
import { compareRuns, defaultConfidence } from '../../compare/compare.js';
import type { Change } from '../../compare/result.js';
import { hiddenText } from '../../measure/ddp/cases.js';
import { identityOf, repeatsOf } from '../../results/repeats.js';
import type { VerdictLevel } from '../../results/result.js';
import { countText, percentText, sizeText } from '../../results/units.js';
import type { LabelledRun } from '../charts/index.js';
import { placesBetween } from '../charts/matrix.js';
import {
  numeric,
  repeatedEntries,
  seriesNames,
  setOf,
  type RepeatedEntry,
} from '../charts/series.js';
import { mergedRepeats, rangeText, spreadOf, type Measured } from '../repeats.js';
import type { Column } from '../table.js';
import { verdictText, verdictWords } from '../verdict-words.js';
import type { Cell, PageTable } from './cells.js';
import { figureOf, sizeAsked, type Figure } from './figure.js';
import { groupBy } from '../../results/grouping.js';

/** The subject of one line: a case at several sizes or between several places. */
interface Group {
  readonly what: string;
  /** By set of runs. */
  readonly sets: ReadonlyMap<string, readonly RepeatedEntry[]>;
}

/** Parameters that vary within a group: sizes, and links with the copying side and background load. */
const within = ['bytes', 'bucketBytes', 'count', 'flow', 'from', 'to', 'hosts', 'by', 'beside'];
/** Parameters that are named even if common. */
const told = ['kvStore', 'mode', 'phase', 'optimizer', 'model', 'workers'];

function isPlaced({ result: { parameters } }: RepeatedEntry): boolean {
  return typeof parameters.from === 'string' && typeof parameters.to === 'string';
}

/** If the phases of a step are separate cases, only the one with communication counts. */
function isAsked({ result: { parameters } }: RepeatedEntry): boolean {
  return parameters.phase !== 'forward';
}

/** Pairs within a host say nothing about pairs between hosts. */
function reachOf({ parameters: { hosts } }: Measured): string {
  if (typeof hosts !== 'string') return '';
  const [one, other] = hosts.split(' - ');
  return one === other ? 'within a host' : 'between hosts';
}

/** The answer of one set of runs. */
interface Answer {
  readonly figure: Figure;
  /** The representative case of the group: its size, or its best bucket size. */
  readonly at: string;
  readonly median: number;
  /** Range over several runs or places; empty for one. */
  readonly range: string;
  /** `8 runs`, `12 ways`; empty for one. */
  readonly count: string;
  readonly ofLimit: string;
  readonly hidden: string;
  readonly verdict: Cell;
  /** The verdict in a word. */
  readonly short: Cell;
  /** The case whose repeats the median is of; absent if several are combined. */
  readonly identity?: string;
}

const gravity: Readonly<Record<VerdictLevel, number>> = { poor: 0, fair: 1, good: 2, none: 3 };

function levelCell(text: string, level: VerdictLevel): Cell {
  return { text, ...(level === 'none' ? {} : { level }) };
}

/** As requested: for bidirectional messages the size of one. */
function sizeOf(result: Measured): string {
  return sizeText(numeric(result, 'bytes') ?? result.bytes);
}

/** Between places every figure counts: median and range, and the name of the one furthest from its limit. */
function placedAnswer(entries: readonly RepeatedEntry[], sizes: ReadonlySet<number>): Answer {
  const all = entries.map(({ result }) => result);
  const size = sizeAsked(all, sizes);
  const cases = all.filter(({ bytes }) => bytes === size);
  const figure = figureOf(cases[0]!);
  const spread = spreadOf(cases.map(figure.read));
  const way = ({ parameters: { from, to, hosts } }: Measured): string =>
    `${String(from)} to ${String(to)}${typeof hosts === 'string' ? `, ${hosts}` : ''}`;
  const limited = cases.flatMap((one) => (one.limit === null ? [] : [{ one, ...one.limit }]));
  const shares = limited.map(({ ratio }) => percentText(ratio));
  const least = limited.toSorted((a, b) => a.ratio - b.ratio)[0];
  const middle =
    limited.length === 0 ? '' : percentText(spreadOf(limited.map(({ ratio }) => ratio)).median);
  const worst = cases.reduce((a, b) =>
    gravity[b.verdict.level] < gravity[a.verdict.level] ? b : a,
  );
  const { level } = worst.verdict;
  const unjudged = cases.filter(({ verdict }) => verdict.level === 'none').length;
  const alike = cases.every(({ verdict }) => verdict.level === level);
  const left =
    level === 'none' || unjudged === 0
      ? ''
      : `; ${String(unjudged)} of ${String(cases.length)} not judged`;
  const at = alike || level === 'good' ? '' : ` (${way(worst)})`;
  return {
    figure,
    at: cases.length < all.length ? sizeOf(cases[0]!) : '',
    median: spread.median,
    range: rangeText(spread, figure.text),
    count: countText(cases.length, 'way'),
    ofLimit:
      least === undefined || new Set(shares).size === 1
        ? middle
        : `${middle}, ${percentText(least.ratio)} from ${way(least.one)}`,
    hidden: '',
    verdict: levelCell(`${verdictWords(worst)}${at}${left}`, level),
    short: levelCell(verdictText(worst), level),
  };
}

/** The representative size of an operation, or the fastest bucket size. */
function leading(entries: readonly RepeatedEntry[], sizes: ReadonlySet<number>): RepeatedEntry[] {
  const size = sizeAsked(
    entries.map(({ result }) => result),
    sizes,
  );
  const atSize = entries.filter(({ result }) => result.bytes === size);
  const best = atSize.reduce((a, b) =>
    b.result.statistics.medianSeconds < a.result.statistics.medianSeconds ? b : a,
  );
  const bucket = numeric(best.result, 'bucketBytes');
  return atSize.filter(({ result }) => numeric(result, 'bucketBytes') === bucket);
}

function hiddenOf({ values, verdict }: Measured): string {
  const percent = values?.hiddenPercent;
  if (typeof percent === 'number') return hiddenText(percent / 100);
  return verdict.reason === 'scatter' ? 'cannot be told' : '';
}

function answerOf(entries: readonly RepeatedEntry[], sizes: ReadonlySet<number>): Answer {
  if (entries.length > 1 && entries.every(isPlaced))
    return placedAnswer(placesBetween(entries), sizes);
  const repeats = leading(entries, sizes).flatMap((one) => one.repeats);
  const result = mergedRepeats(repeats);
  const figure = figureOf(result);
  const spread = spreadOf(repeats.map(figure.read));
  const several = (read: (one: Measured) => unknown): boolean =>
    new Set(entries.map((one) => read(one.result))).size > 1;
  const bucket = numeric(result, 'bucketBytes');
  const at = [
    ...(several(({ bytes }) => bytes) ? [sizeOf(result)] : []),
    ...(bucket !== undefined && several(({ parameters }) => parameters.bucketBytes)
      ? [`best bucket ${sizeText(bucket)}`]
      : []),
  ];
  const hidden = hiddenOf(result);
  const { level } = result.verdict;
  return {
    figure,
    at: at.join(', '),
    median: spread.median,
    range: repeats.length > 1 ? rangeText(spread, figure.text) : '',
    count: repeats.length > 1 ? countText(repeats.length, 'run') : '',
    ofLimit: result.limit === null ? '' : percentText(result.limit.ratio),
    hidden,
    verdict: levelCell(hidden === '' ? verdictWords(result) : verdictText(result), level),
    short: levelCell(verdictText(result), level),
    identity: identityOf(result),
  };
}

/** Drops columns that are empty for all groups. */
function filled({ columns, rows }: PageTable): PageTable {
  const filledAt = columns.map((_, index) => rows.some((row) => row[index]?.text !== ''));
  return {
    columns: columns.filter((_, index) => filledAt[index]),
    rows: rows.map((row) => row.filter((_, index) => filledAt[index])),
  };
}

function groupsOf(runs: readonly LabelledRun[]): Group[] {
  const entries = repeatedEntries(runs, ({ status }) => status === 'ok');
  const names = seriesNames(entries, { ignored: within, told, runOf: () => '', named: true });
  const asked = entries.filter(isAsked);
  const reaches = new Set(asked.map(({ result }) => reachOf(result)).filter((one) => one !== ''));
  const whatOf = (entry: RepeatedEntry): string => {
    const reach = reaches.size > 1 ? reachOf(entry.result) : '';
    return `${names.get(entry) ?? entry.result.name}${reach === '' ? '' : `, ${reach}`}`;
  };
  return [...groupBy(asked, whatOf)].map(([what, group]) => ({
    what,
    sets: groupBy(group, ({ run }) => setOf(run)),
  }));
}

function sizesOf(entries: readonly RepeatedEntry[]): Set<number> {
  return new Set(entries.map(({ result }) => result.bytes));
}

function columnsOf(titles: readonly string[]): Column[] {
  const words = new Set(['run', 'what', 'verdict']);
  return titles.map((title) => ({ title, align: words.has(title) ? 'left' : 'right' }));
}

function described(what: string, at: string): Cell {
  return { text: at === '' ? what : `${what}, ${at}` };
}

/** A line per group and set. */
function listed(groups: readonly Group[], sets: readonly string[]): PageTable {
  const several = sets.length > 1;
  const rows = sets.flatMap((set) =>
    groups.flatMap(({ what, sets: of }): Cell[][] => {
      const entries = of.get(set);
      if (entries === undefined) return [];
      const { figure, at, median, range, count, ofLimit, hidden, verdict } = answerOf(
        entries,
        sizesOf(entries),
      );
      return [
        [
          { text: several ? set : '' },
          described(what, at),
          { text: figure.text(median), value: median },
          { text: [range, count].filter((text) => text !== '').join(', ') },
          { text: ofLimit },
          { text: hidden },
          verdict,
        ],
      ];
    }),
  );
  const columns = columnsOf([
    'run',
    'what',
    'median',
    'range',
    'of its limit',
    'communication hidden',
    'verdict',
  ]);
  return filled({ columns, rows });
}

const changeLevels: Partial<Readonly<Record<Change, VerdictLevel>>> = {
  worse: 'poor',
  better: 'good',
};

/**
 * The changes by `gradlink compare`. Resamples only these cases, because it is slow, with the confidence that compare
 * has per case among all.
 */
function changesOf(
  runs: readonly LabelledRun[],
  sets: readonly string[],
  asked: ReadonlySet<string>,
): Map<string, Change> {
  const all = sets.map((set) =>
    runs.filter((run) => setOf(run) === set).map(({ report }) => report),
  );
  const [base, next] = all.map((reports) => repeatsOf(reports.flatMap(({ cases }) => cases)));
  const common = [...base!.keys()].filter((identity) => next!.has(identity));
  const resampled = common.filter((identity) => asked.has(identity));
  if (resampled.length === 0) return new Map();
  const [old, now] = all.map((reports, index) => ({
    name: sets[index]!,
    reports: reports.map((report) => ({
      ...report,
      cases: report.cases.filter((one) => resampled.includes(identityOf(one))),
    })),
  }));
  const confidence = 1 - (1 - defaultConfidence) * (resampled.length / common.length);
  const { cases } = compareRuns(old!, now!, { confidence });
  return new Map(cases.map((one) => [identityOf(one), one.change]));
}

/** `36 % → 38 %`, or once if equal. */
function fromTo(base: string, next: string): string {
  return base === next ? base : `${base || '-'} → ${next || '-'}`;
}

/** A figure with its range, and its subject if the other run's differs. */
function pairedCell(answer: Answer | undefined, at: string): Cell {
  if (answer === undefined) return { text: '-' };
  const { figure, median, range, count } = answer;
  const aside = [range, count, answer.at === at ? '' : answer.at].filter((text) => text !== '');
  const text = figure.text(median);
  return { text: aside.length === 0 ? text : `${text} (${aside.join(', ')})`, value: median };
}

interface Pair {
  readonly what: string;
  readonly base: Answer | undefined;
  readonly next: Answer | undefined;
}

/** Both runs' answers for a group, at the largest common size. */
function pairOf({ what, sets: of }: Group, sets: readonly string[]): Pair {
  const both = sets.map((set) => of.get(set) ?? []);
  const [first, second] = both.map(sizesOf);
  const common = new Set([...first!].filter((size) => second!.has(size)));
  const [base, next] = both.map((entries) =>
    entries.length === 0
      ? undefined
      : answerOf(entries, common.size > 0 ? common : sizesOf(entries)),
  );
  return { what, base, next };
}

/** The cells of a group in one run or both. */
function pairedCells({ what, base, next }: Pair, changes: ReadonlyMap<string, Change>): Cell[] {
  if (base === undefined || next === undefined) {
    const { at, ofLimit, hidden, short } = (base ?? next)!;
    const figures = [pairedCell(base, at), pairedCell(next, at)];
    return [
      described(what, at),
      ...figures,
      { text: '' },
      { text: ofLimit },
      { text: hidden },
      short,
    ];
  }
  const at = base.at === next.at ? base.at : '';
  const ratio = next.median / base.median;
  const same = base.identity === next.identity && base.identity !== undefined;
  const change = same ? changes.get(base.identity) : undefined;
  const level = change === undefined ? undefined : changeLevels[change];
  return [
    described(what, at),
    pairedCell(base, at),
    pairedCell(next, at),
    {
      text: `${ratio.toFixed(2)}${change === undefined ? '' : ` ${change}`}`,
      value: ratio,
      ...(level === undefined ? {} : { level }),
    },
    { text: fromTo(base.ofLimit, next.ofLimit) },
    { text: fromTo(base.hidden, next.hidden) },
    base.short.text === next.short.text
      ? next.short
      : { text: fromTo(base.short.text, next.short.text) },
  ];
}

/** Both runs of a group in a line, with the ratio of their figures. */
function paired(
  runs: readonly LabelledRun[],
  groups: readonly Group[],
  sets: readonly string[],
): PageTable {
  const pairs = groups.map((group) => pairOf(group, sets));
  const asked = new Set(pairs.flatMap(({ next }) => next?.identity ?? []));
  const changes = changesOf(runs, sets, asked);
  const titles = ['what', `base: ${sets[0]!}`, `new: ${sets[1]!}`, 'new / base'];
  const columns = columnsOf([...titles, 'of its limit', 'communication hidden', 'verdict']);
  return filled({ columns, rows: pairs.map((pair) => pairedCells(pair, changes)) });
}

export interface Headline extends PageTable {
  /** A description of the figures. */
  readonly note: string;
}

const listedNote =
  'Medians; of several runs or cycles with the range they lie in. At the largest size of each operation; latencies and rates of messages at the smallest.';
const pairedNote =
  'new / base is the ratio of the two figures: of bandwidths and rates more is quicker, of times less. Better, worse, same and unclear are what gradlink compare says of the times; changed: the machines differ too.';

/** A line per group of cases that ran, grouped by everything but size, bucket or places. */
export function headline(runs: readonly LabelledRun[]): Headline {
  const groups = groupsOf(runs);
  const sets = [...new Set(runs.map(setOf))];
  const pairs = sets.length === 2 && groups.some(({ sets: of }) => of.size === 2);
  const note = pairs ? `${listedNote} ${pairedNote}` : listedNote;
  return { note, ...(pairs ? paired(runs, groups, sets) : listed(groups, sets)) };
}
