// A comparison as text, Markdown, JSON and JUnit.
import {
  changes,
  countChanges,
  hasRegressed,
  type Change,
  type ComparedCase,
  type Comparison,
  type Ratio,
  type RunsInfo,
} from '../compare/result.js';
import { caseNames } from './case-names.js';
import { junitXml, type JunitCase } from './junit.js';
import { markdownTable, plain } from './markdown.js';
import { caseTitle, startedText } from './summary.js';
import { tableLines, type Column } from './table.js';
import type { CaseIdentity } from '../results/result.js';
import { percentText, timeText } from '../results/units.js';
import { groupBy } from '../results/grouping.js';

/** Formats of `gradlink compare --format`. */
export const comparisonFormats = ['text', 'json', 'markdown', 'junit'] as const;
export type ComparisonFormat = (typeof comparisonFormats)[number];

const columns: readonly Column[] = [
  { title: 'change', align: 'left' },
  { title: 'case', align: 'left' },
  { title: 'base', align: 'right' },
  { title: 'new', align: 'right' },
  { title: 'new / base', align: 'right', weight: 2 },
  { title: 'interval', align: 'left', weight: 1 },
];

interface Naming {
  /** Common to all cases. */
  readonly everywhere: string;
  readonly nameOf: (one: CaseIdentity) => string;
}

/** `4 MiB out-of-place`, with the operation first if there are several. */
function naming(cases: readonly CaseIdentity[]): Naming {
  const { common, parts } = caseNames(cases);
  const names = new Set(cases.map(({ name }) => name));
  return {
    everywhere: [...(names.size === 1 ? names : []), ...common].join(', '),
    nameOf(one) {
      if (typeof one.parameters.flow === 'string') return caseTitle(one);
      const told = parts(one);
      const named = names.size > 1 || told.length === 0;
      return [...(named ? [one.name] : []), ...told].join(' ');
    },
  };
}

function cells({ change, ratio, base, next }: ComparedCase, name: string): string[] {
  return [
    change,
    name,
    base === null ? '-' : timeText(base.medianSeconds),
    next === null ? '-' : timeText(next.medianSeconds),
    ratio === null ? '-' : ratio.median.toFixed(3),
    ratio === null ? '' : `${ratio.lower.toFixed(3)} to ${ratio.upper.toFixed(3)}`,
  ];
}

function runsText(info: RunsInfo): string {
  const { name, tool, program, runs } = info;
  const several = runs === 1 ? '' : `, ${String(runs)} runs`;
  return program === undefined
    ? `${name} (${tool} of gradlink ${info.packageVersion}, ${info.startedAt}${several})`
    : `${name} (${startedText(info)}${several})`;
}

/** `1.06 ± 0.02`: a factor with half the width of its interval, in matching digits. */
function factorText({ median, lower, upper }: Omit<Ratio, 'confidence'>): string {
  const half = (upper - lower) / 2;
  const digits = half < 0.005 ? 3 : 2;
  return `${median.toFixed(digits)} ± ${half.toFixed(digits)}`;
}

/** The speed-up in a sentence; undefined without figures on both sides. */
function speedSentence({ ratio, cases }: Comparison): string | undefined {
  if (ratio === null) return undefined;
  const isSlower = ratio.lower > 1;
  const factor = ({ median, lower, upper }: Ratio): Omit<Ratio, 'confidence'> =>
    isSlower
      ? { median, lower, upper }
      : { median: 1 / median, lower: 1 / upper, upper: 1 / lower };
  const each = cases
    .flatMap((one) => (one.ratio === null ? [] : [factor(one.ratio).median]))
    .sort((a, b) => a - b);
  const range = `${each[0]!.toFixed(2)} to ${each.at(-1)!.toFixed(2)}`;
  const mean =
    each.length === 1 ? '' : ` (geometric mean of ${String(each.length)} cases, ${range})`;
  const sentence = `new is ${factorText(factor(ratio))} times`;
  if (isSlower) return `${sentence} slower than base${mean}`;
  if (ratio.upper < 1) return `${sentence} faster than base${mean}`;
  return `${sentence} as fast as base${mean}: no clear difference`;
}

/** `3 same, 1 worse`: nonzero counts. */
function countsText(comparison: Comparison): string {
  const counts = countChanges(comparison);
  return changes
    .filter((change) => counts[change] > 0)
    .map((change) => `${String(counts[change])} ${change}`)
    .join(', ');
}

/** Whether a case counts as worse based on single runs. */
function onSingleRuns(comparison: Comparison): boolean {
  return comparison.cases.some(
    ({ change, base, next }) => change === 'worse' && base?.runs === 1 && next?.runs === 1,
  );
}

const singleRuns =
  ', from one run each, which cannot show how much runs differ; take several (collectives -N 8, or a folder of runs)';

/** The result in a sentence. */
export function comparisonVerdict(comparison: Comparison): string {
  const counts = countChanges(comparison);
  const limit = `beyond ${percentText(comparison.tolerance, [comparison.tolerance])}`;
  if (!comparison.cases.some(({ base, next }) => base !== null && next !== null)) {
    return 'nothing to compare: no case has figures on both sides; run both with the same options';
  }
  if (counts.failed > 0 || counts.worse > 0) {
    const parts = [
      ...(counts.worse > 0 ? [`${String(counts.worse)} worse ${limit}`] : []),
      ...(counts.failed > 0 ? [`${String(counts.failed)} failed`] : []),
    ];
    return `regression: ${parts.join(', ')}${onSingleRuns(comparison) ? singleRuns : ''}`;
  }
  if (counts.changed > 0) {
    return (
      `changed environment: ${String(counts.changed)} differ ${limit}, and so do the machines; ` +
      'measure a new baseline, or judge nevertheless with --ignore-environment'
    );
  }
  return `no regression ${limit}`;
}

/** Changes without figures on both sides, which need a word. */
const spoken: ReadonlySet<Change> = new Set<Change>(['failed', 'missing', 'mended']);

/** Maximum number of named cases; beyond it only their count. */
const mostNamed = 3;

/** Notes that the table lacks, once for all cases that share them. */
function notes(cases: readonly ComparedCase[], { nameOf }: Naming): string[] {
  const told = cases.flatMap((one) => {
    const { change, text, advice = spoken.has(change) ? text : undefined } = one;
    return advice === undefined ? [] : [{ one, change, advice }];
  });
  return [...groupBy(told, ({ change, advice }) => JSON.stringify([change, advice])).values()].map(
    (group) => {
      const { change, advice } = group[0]!;
      const names = group.map(({ one }) => nameOf(one));
      const which = names.length > mostNamed ? `${String(names.length)} cases` : names.join(', ');
      return `${change}: ${which}: ${advice}`;
    },
  );
}

/** Changed cases first, then in the order of the run. */
function inOrder(cases: readonly ComparedCase[]): ComparedCase[] {
  return [...cases].sort((a, b) => changes.indexOf(a.change) - changes.indexOf(b.change));
}

function textLines(comparison: Comparison, room: number): string[] {
  const cases = inOrder(comparison.cases);
  const names = naming(cases);
  const sentence = speedSentence(comparison);
  const remarks = notes(cases, names);
  return [
    ...(sentence === undefined ? [] : [sentence]),
    `base  ${runsText(comparison.base)}`,
    `new   ${runsText(comparison.next)}`,
    ...comparison.environment.map(
      ({ name, base, next, decisive }) =>
        `      ${decisive ? 'changed environment' : 'also changed'}: ${name}: ${base} -> ${next}`,
    ),
    ...(names.everywhere === '' ? [] : [`everywhere: ${names.everywhere}`]),
    '',
    ...tableLines(
      columns,
      cases.map((one) => cells(one, names.nameOf(one))),
      room,
    ),
    '',
    ...remarks,
    ...(remarks.length > 0 ? [''] : []),
    countsText(comparison),
    comparisonVerdict(comparison),
  ];
}

function markdownLines(comparison: Comparison): string[] {
  const cases = inOrder(comparison.cases);
  const { everywhere, nameOf } = naming(cases);
  const sentence = speedSentence(comparison);
  return [
    `## gradlink compare: ${comparisonVerdict(comparison)}`,
    '',
    ...(sentence === undefined ? [] : [plain(sentence), '']),
    `- Base: ${plain(runsText(comparison.base))}`,
    `- New: ${plain(runsText(comparison.next))}`,
    ...comparison.environment.map(
      ({ name, base, next }) => `- Changed: ${plain(`${name}: ${base} -> ${next}`)}`,
    ),
    ...(everywhere === '' ? [] : [`- Everywhere: ${plain(everywhere)}`]),
    '',
    ...markdownTable(
      [...columns, { title: 'in words', align: 'left' }],
      cases.map((one) => [...cells(one, nameOf(one)), one.text]),
    ),
  ];
}

function junitCase(one: ComparedCase): JunitCase {
  const title = { name: caseTitle(one), seconds: one.next?.medianSeconds ?? 0 };
  if (one.change === 'worse') return { ...title, failure: { type: 'worse', message: one.text } };
  if (one.change === 'failed') return { ...title, error: { type: 'failed', message: one.text } };
  if (one.change === 'missing' || one.change === 'changed') {
    return { ...title, skipped: `${one.change}: ${one.text}` };
  }
  return { ...title, output: `${one.change}: ${one.text}` };
}

export function renderComparison(
  comparison: Comparison,
  format: ComparisonFormat,
  room = Infinity,
): string {
  switch (format) {
    case 'text':
      return `${textLines(comparison, room).join('\n')}\n`;
    case 'markdown':
      return `${markdownLines(comparison).join('\n')}\n`;
    case 'json':
      return `${JSON.stringify({ ...comparison, regressed: hasRegressed(comparison) }, null, 2)}\n`;
    case 'junit':
      return junitXml({
        name: `gradlink compare ${comparison.base.name} ${comparison.next.name}`,
        timestamp: comparison.next.startedAt,
        cases: comparison.cases.map(junitCase),
      });
  }
}
