// `gradlink check` as text: the answer in one line, then a line for each part.
import { groupBy } from '../results/grouping.js';
import {
  hasMeasurement,
  type CaseResult,
  type Report,
  type VerdictLevel,
} from '../results/result.js';
import { bandwidthText, countText, sizeText, timeText } from '../results/units.js';
import { wayOf } from './p2p-tables.js';
import type { Measured } from './repeats.js';
import { headLines } from './summary.js';
import type { Tool } from './tool.js';

/** Bad parts that the answer names. */
const mostNamed = 3;

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** The title of a part. */
function titleOf(result: CaseResult): string {
  const { host } = result.parameters;
  if (typeof host !== 'string') return partTitle(result);
  return result.name === 'host' ? `host ${host}` : `${host}: ${partTitle(result)}`;
}

/** The participants of an all-reduce. */
const placeWords: Readonly<Record<string, string>> = {
  gpus: 'GPUs',
  'gpus of hosts': 'hosts, a GPU of each',
};

function partTitle(result: CaseResult): string {
  const { name, parameters } = result;
  const { between, ranks, bytes, placement, gpu, quantity, rail } = parameters;
  const way = wayOf(result);
  if (way !== '') {
    const both = name.includes('bidirectional') ? ', both ways' : '';
    const of = quantity === 'latency' ? ', latency' : typeof rail === 'string' ? `, ${rail}` : '';
    return `${way}${both}${of}`;
  }
  if (typeof gpu === 'string') return name === 'doctor' ? gpu : `${gpu} ${name}`;
  if (name !== 'all_reduce') return name;
  const size = typeof bytes === 'number' ? ` of ${sizeText(bytes)}` : '';
  const where = placement === 'in-place' ? ' in place' : '';
  return `all-reduce${size}${where}, ${textOf(ranks)} ${placeWords[textOf(between)] ?? textOf(between)}`;
}

function isGood(result: CaseResult): boolean {
  return result.status === 'ok';
}

/**
 * The bad hosts, which a scheduler should exclude. A bad link between two good hosts counts for neither.
 *
 * @param own the host of the parts of one machine
 */
export function badHosts({ cases }: Pick<Report, 'cases'>, own: string): string[] {
  const isOfHosts = cases.some(({ name }) => name === 'host');
  const bad = cases.filter(({ status }) => status === 'error');
  const hosts = bad.map(({ parameters: { host } }) =>
    typeof host === 'string' ? host : isOfHosts ? undefined : own,
  );
  return [...new Set(hosts.filter((host) => host !== undefined))];
}

/** Names of the parts that differ from an earlier report. */
function changesSince({ cases }: Report, previous: Report): readonly string[] {
  const ofAll = (all: readonly CaseResult[]): Map<string, boolean> =>
    new Map(
      [
        ...groupBy(
          all.filter(({ status }) => status !== 'waived'),
          titleOf,
        ),
      ].map(([title, same]) => [title, same.every(isGood)]),
    );
  const [before, now] = [ofAll(previous.cases), ofAll(cases)];
  const named = (what: string, titles: readonly string[]): string[] =>
    titles.length === 0 ? [] : [`  ${what}: ${titles.join('; ')}`];
  const both = [...now.keys()].filter((title) => before.has(title));
  const of = (was: boolean, is: boolean): readonly string[] =>
    both.filter((title) => before.get(title) === was && now.get(title) === is);
  const lines = [
    ...named('bad now', of(true, false)),
    ...named('good again', of(false, true)),
    ...named('bad still', of(false, false)),
    ...named(
      'gone',
      [...before.keys()].filter((title) => !now.has(title)),
    ),
    ...named(
      'new',
      [...now.keys()].filter((title) => !before.has(title)),
    ),
  ];
  const since = `since ${previous.run.startedAt}`;
  return lines.length === 0 ? [`${since}: no part has changed`] : [`${since}:`, ...lines];
}

/** Counts good and fair parts; waived ones do not count. */
function countsOf(cases: readonly CaseResult[]): { readonly good: number; readonly all: number } {
  const shown = cases.filter(({ status }) => status !== 'waived');
  return { good: shown.filter(isGood).length, all: shown.length };
}

function problemOf(result: CaseResult): string {
  // The part's own line has the rest.
  const [reason = ''] = (result.status === 'ok' ? '' : result.reason).split('; ');
  // A link's reason begins with its share: `gpu:3 to gpu:5 at 41 % of ...`.
  return `${titleOf(result)}${/^[\d.]+ %/.test(reason) ? ' at ' : ': '}${reason}`;
}

/** Sorts by the distance from the expected figure; each link, and each all-reduce's ranks, only once. */
function worstFirst(bad: readonly CaseResult[]): CaseResult[] {
  const ratio = (one: CaseResult): number =>
    hasMeasurement(one) && one.check.passed ? (one.limit?.ratio ?? 0) : -1;
  const once = groupBy(
    bad,
    (one) =>
      wayOf(one) ||
      [one.name, one.parameters.host, one.parameters.between ?? one.parameters.gpu]
        .map(textOf)
        .join(' '),
  );
  return [...once.values()].map(([first]) => first!).toSorted((a, b) => ratio(a) - ratio(b));
}

/** `good: 21 of 21`, or `bad: gpu:3 to gpu:5 at 41 % of ...; 20 of 21 good`. */
export function checkAnswer(cases: readonly CaseResult[]): string {
  const { good, all } = countsOf(cases);
  const bad = cases.filter(({ status }) => status === 'error');
  const fair = cases.filter(
    (one) => isGood(one) && hasMeasurement(one) && one.verdict.level === 'fair',
  );
  if (all === 0) {
    const why = new Set(cases.map((one) => (one.status === 'ok' ? '' : one.reason)));
    return `bad: nothing was checked: ${[...why].join('; ') || 'nothing that was requested is on this machine'}`;
  }
  if (bad.length === 0) {
    const some = fair.length === 0 ? '' : `, ${String(fair.length)} of them fair`;
    return `good: ${String(good)} of ${String(all)}${some}`;
  }
  const worst = worstFirst(bad);
  const named = worst.slice(0, mostNamed).map(problemOf);
  const more = worst.length - named.length;
  const rest = more === 0 ? [] : [`and ${String(more)} more`];
  return `bad: ${[...named, ...rest].join('; ')}; ${String(good)} of ${String(all)} good`;
}

/** Kinds of parts that share a line if all are good. */
const kinds: Readonly<Record<string, string>> = {
  host: 'hosts that answer',
  latency: 'host to host, latency',
  bandwidth: 'host to host',
  bidirectional: 'host to host, both ways',
  rail: 'host to host, the same GPU of each',
  host_to_device_memcpy_ce: 'host to GPUs',
  device_to_host_memcpy_ce: 'GPUs to host',
  host_to_device_bidirectional_memcpy_ce: 'host to GPUs, both ways',
  device_local_copy: 'within GPUs',
  device_to_device_memcpy_read_ce: 'GPU to GPU',
  device_to_device_bidirectional_memcpy_read_ce: 'GPU to GPU, both ways',
};

function figureOf({ bytes, busBandwidth, statistics, parameters: { quantity } }: Measured): string {
  if (quantity === 'latency') return timeText(statistics.medianSeconds);
  return bytes > 0 ? bandwidthText(busBandwidth.bytesPerSecond) : '';
}

/** The level of a row's word. */
const levels: Readonly<Record<string, VerdictLevel>> = { bad: 'poor', fair: 'fair', good: 'good' };
const order: readonly VerdictLevel[] = ['poor', 'fair', 'good', 'none'];

interface Row {
  readonly word: string;
  readonly title: string;
  readonly figure: string;
  readonly text: string;
  readonly cause: string | null;
}

function rowOf(result: CaseResult): Row {
  const title = titleOf(result);
  if (!hasMeasurement(result)) {
    const text = result.reason;
    return {
      word: result.status === 'waived' ? 'waived' : 'bad',
      title,
      figure: '',
      text,
      cause: null,
    };
  }
  const { verdict, check } = result;
  const isBad = result.status === 'error';
  return {
    word: isBad ? 'bad' : verdict.level === 'none' ? '-' : verdict.level,
    title,
    figure: figureOf(result),
    text: isBad && !check.passed ? result.reason : verdict.text,
    cause: verdict.likelyCause,
  };
}

const isWell = (one: CaseResult): one is Measured =>
  hasMeasurement(one) && one.verdict.level === 'good';

function isExcused(one: CaseResult): one is Measured {
  return hasMeasurement(one) && one.verdict.reason === 'excused';
}

function slowest(cases: readonly Measured[]): Measured {
  const rate = ({ busBandwidth }: Measured): number => busBandwidth.bytesPerSecond;
  return cases.reduce((a, b) => (rate(b) < rate(a) ? b : a));
}

/** Merges several good parts, or several excused by the same fault, into one line. */
function kindRows(group: readonly CaseResult[], kind: string | undefined): Row[] {
  if (kind === undefined) return group.map(rowOf);
  const taken = new Set<CaseResult>();
  const together = [isWell, isExcused].flatMap((isMeant) => {
    const alike = group.filter(isMeant);
    if (alike.length < 2) return [];
    for (const one of alike) taken.add(one);
    const least = slowest(alike);
    const row = rowOf(least);
    const unit = least.name === 'host' ? 'host' : 'way';
    const text = unit === 'host' ? row.text : `at the least (${partTitle(least)}): ${row.text}`;
    return [{ ...row, title: `${kind}: ${countText(alike.length, unit)}`, text }];
  });
  return [...group.filter((one) => !taken.has(one)).map(rowOf), ...together];
}

/** The own parts of a cluster's host: one line if good, else one for each part that is not. */
function hostRows(host: string, group: readonly CaseResult[]): Row[] {
  const good = group.filter(
    (one) => isWell(one) || (hasMeasurement(one) && one.verdict.level === 'none'),
  );
  const others = group
    .filter(({ status }) => status !== 'waived')
    .filter((one) => !good.some((other) => other === one));
  const title = `${host}: ${countText(good.length, 'part')}`;
  const row: Row = { word: 'good', title, figure: '', text: 'by itself', cause: null };
  return [...others.map(rowOf), ...(good.length === 0 ? [] : [row])];
}

function rowsOf(cases: readonly CaseResult[]): Row[] {
  const ofHost = ({ name, parameters: { host } }: CaseResult): string =>
    typeof host === 'string' && name !== 'host' ? host : '';
  const apart = groupBy(cases, ofHost);
  const together = groupBy(apart.get('') ?? [], ({ name }) => name);
  apart.delete('');
  return [
    ...[...together].flatMap(([name, group]) => kindRows(group, kinds[name])),
    ...[...apart].flatMap(([host, group]) => hostRows(host, group)),
  ];
}

function table(rows: readonly Row[]): string[] {
  const width = (of: (row: Row) => string): number =>
    Math.max(0, ...rows.map((row) => of(row).length));
  const [words, titles, figures] = [
    width(({ word }) => word),
    width(({ title }) => title),
    width(({ figure }) => figure),
  ];
  const indent = ' '.repeat(words + titles + figures + 6);
  return rows.flatMap(({ word, title, figure, text, cause }) => [
    `${word.padEnd(words)}  ${title.padEnd(titles)}  ${figure.padStart(figures)}  ${text}`.trimEnd(),
    ...(cause === null ? [] : [`${indent}-> ${cause}`]),
  ]);
}

/** @param previous an earlier report of the same machine or cluster */
export function checkToolSince(previous?: Report): Tool {
  return {
    name: 'check',
    answer: ({ cases }) => {
      const parts = rowsOf(cases)
        .map(({ word, title, figure, text, cause }) => ({
          word,
          level: levels[word] ?? ('none' as const),
          part: title,
          figure,
          text: cause === null ? text : `${text}. Likely: ${cause}`,
        }))
        .toSorted((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
      return { text: checkAnswer(cases), level: parts[0]?.level ?? 'poor', parts };
    },
    // The answer comes first but is known last.
    head: () => [],
    groups: (cases) => [cases],
    rows: () => [],
    foot: (report: Report) => [
      checkAnswer(report.cases),
      ...(previous === undefined ? [] : changesSince(report, previous)),
      '',
      ...table(rowsOf(report.cases)),
      '',
      ...headLines(report),
    ],
  };
}

export const checkTool = checkToolSince();
