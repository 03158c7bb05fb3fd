// Runs as Markdown for an issue: commands and machines, verdicts, each chart's table, all cases.
import type { Chart, LabelledRun } from '../charts/index.js';
import { setOf } from '../charts/series.js';
import { headline } from './headline.js';
import { caseCells, caseColumns } from '../render.js';
import { code, markdownTable, plain } from '../markdown.js';
import { formulas, remarks, runFacts } from './words.js';
import { groupBy } from '../../results/grouping.js';

/** @param pictures addresses of the charts' pictures by id; charts without one only have their tables */
export function runsToMarkdown(
  runs: readonly LabelledRun[],
  charts: readonly Chart[],
  pictures: ReadonlyMap<string, string>,
): string {
  const { note, columns, rows } = headline(runs);
  const answer = rows.map((row) => row.map(({ text }) => text));
  const lines = ['# gradlink report', '', '## Result', '', ...markdownTable(columns, answer), ''];
  lines.push(plain(note), '');
  for (const { label, report } of runs) {
    lines.push(`## ${plain(label)}`, '');
    for (const [name, text] of runFacts(report)) {
      lines.push(`- ${name}: ${name === 'command' ? code(text) : plain(text)}`);
    }
    lines.push('');
  }
  const sets = groupBy(runs, setOf);
  lines.push('## In words', '');
  for (const [set, own] of sets) {
    if (sets.size > 1) lines.push(`### ${plain(set)}`, '');
    for (const { level, text } of remarks({ cases: own.flatMap(({ report }) => report.cases) })) {
      lines.push(`- **${level === 'none' ? 'note' : level}** ${plain(text)}`);
    }
    lines.push('');
  }
  for (const { id, title, note, table } of charts) {
    const picture = pictures.get(id);
    lines.push(`## ${plain(title)}`, '');
    if (picture !== undefined) lines.push(`![${plain(title)}](${picture})`, '', plain(note), '');
    lines.push(...markdownTable(table.columns, table.rows), '');
  }
  lines.push('## All figures', '');
  for (const { label, report } of runs) {
    if (runs.length > 1) lines.push(`### ${plain(label)}`, '');
    lines.push(...markdownTable(caseColumns, report.cases.map(caseCells)), '');
  }
  lines.push(plain(formulas(runs.map(({ report }) => report)).join(' ')));
  return `${lines.join('\n').trimEnd()}\n`;
}
