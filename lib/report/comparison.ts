// A comparison in words: text, Markdown, JSON and JUnit.
import {
  changes,
  countChanges,
  hasRegressed,
  type Change,
  type ComparedCase,
  type Comparison,
  type RunsInfo,
} from '../compare/result.js';
import { junitXml, type JunitCase } from './junit.js';
import { markdownTable, plain } from './markdown.js';
import { caseTitle, startedText } from './summary.js';
import { tableLines, type Column } from './table.js';
import { percentText, timeText } from '../results/units.js';

/** What `gradlink compare --format` takes. */
export const comparisonFormats = ['text', 'json', 'markdown', 'junit'] as const;
export type ComparisonFormat = (typeof comparisonFormats)[number];

const columns: readonly Column[] = [
  { title: 'change', align: 'left' },
  { title: 'case', align: 'left' },
  { title: 'base', align: 'right', weight: 2 },
  { title: 'new', align: 'right', weight: 3 },
  { title: 'new / base', align: 'right' },
  { title: 'interval', align: 'left', weight: 1 },
];

function cells({ change, ratio, base, next, ...identity }: ComparedCase): string[] {
  return [
    change,
    caseTitle(identity),
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

/** `3 same, 1 worse`: what there is. */
function countsText(comparison: Comparison): string {
  const counts = countChanges(comparison);
  return changes
    .filter((change) => counts[change] > 0)
    .map((change) => `${String(counts[change])} ${change}`)
    .join(', ');
}

/** Whether something counts as worse that one run of each side says alone. */
function onSingleRuns(comparison: Comparison): boolean {
  return comparison.cases.some(
    ({ change, base, next }) => change === 'worse' && base?.runs === 1 && next?.runs === 1,
  );
}

const singleRuns =
  ', from one run each, which cannot show how much runs differ; take several (collectives -N 8, or a folder of runs)';

/** One sentence: how it ended, and what follows. */
export function comparisonVerdict(comparison: Comparison): string {
  const counts = countChanges(comparison);
  const limit = `beyond ${percentText(comparison.tolerance)}`;
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

/** The cases that need a word beside their line. */
const spoken: ReadonlySet<Change> = new Set<Change>([
  'worse',
  'failed',
  'changed',
  'unclear',
  'missing',
  'mended',
]);

/** Those that changed first; among equals as they ran. */
function inOrder(cases: readonly ComparedCase[]): ComparedCase[] {
  return [...cases].sort((a, b) => changes.indexOf(a.change) - changes.indexOf(b.change));
}

function textLines(comparison: Comparison, room: number): string[] {
  const cases = inOrder(comparison.cases);
  const notes = cases.filter(({ change }) => spoken.has(change));
  return [
    `base  ${runsText(comparison.base)}`,
    `new   ${runsText(comparison.next)}`,
    ...comparison.environment.map(
      ({ name, base, next, decisive }) =>
        `      ${decisive ? 'changed environment' : 'also changed'}: ${name}: ${base} -> ${next}`,
    ),
    '',
    ...tableLines(columns, cases.map(cells), room),
    '',
    ...notes.map((one) => `${one.change}: ${caseTitle(one)}: ${one.text}`),
    ...(notes.length > 0 ? [''] : []),
    countsText(comparison),
    comparisonVerdict(comparison),
  ];
}

function markdownLines(comparison: Comparison): string[] {
  const cases = inOrder(comparison.cases);
  return [
    `## gradlink compare: ${comparisonVerdict(comparison)}`,
    '',
    `- Base: ${plain(runsText(comparison.base))}`,
    `- New: ${plain(runsText(comparison.next))}`,
    ...comparison.environment.map(
      ({ name, base, next }) => `- Changed: ${plain(`${name}: ${base} -> ${next}`)}`,
    ),
    '',
    ...markdownTable(
      [...columns, { title: 'in words', align: 'left' }],
      cases.map((one) => [...cells(one), one.text]),
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

/** A comparison in one of the formats, ending in a line break. */
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
