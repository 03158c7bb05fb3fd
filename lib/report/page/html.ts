// One self-contained page without network access: the answer, the charts, and the rest folded.
import { figuresOf } from '../../compare/compare.js';
import { repeatsOf } from '../../results/repeats.js';
import type { Report } from '../../results/result.js';
import { countText } from '../../results/units.js';
import { chartSvg, chartsOf, type Chart, type LabelledRun } from '../charts/index.js';
import { caseTable } from './case-table.js';
import { tableHtml, textTable, whole } from './cells.js';
import { breakable, escaped } from './escape.js';
import { headline } from './headline.js';
import { policy, sortScript } from './sorting.js';
import { style } from './style.js';
import { formulas, remarks, runFacts } from './words.js';
import { setOf } from '../charts/series.js';
import type { AnswerPart } from '../tool.js';
import { toolOf } from '../tools.js';
import { groupBy } from '../../results/grouping.js';

const widths = { wide: 860, narrow: 344 } as const;
async function pictures(chart: Chart): Promise<string> {
  const drawn = await Promise.all(
    (['wide', 'narrow'] as const).map(async (kind) => {
      const svg = await chartSvg(chart.spec(widths[kind]), `${chart.id}-${kind}`);
      const label = `role="img" aria-label="${escaped(chart.title)}"`;
      return `<div class="${kind}">${svg.replace('<svg ', `<svg ${label} `)}</div>`;
    }),
  );
  return drawn.join('\n');
}

/** Folded on a screen; the style opens it in print. */
function folded(title: string, content: string): string {
  return `<details><summary>${escaped(title)}</summary>\n${content}\n</details>`;
}

/** @param told whether the table of all cases has its figures */
async function chartSection(chart: Chart, told: boolean): Promise<string> {
  const { columns, rows } = chart.table;
  const figures = tableHtml(textTable(columns, rows), `Figures of ${chart.title}`);
  return `<section id="${chart.id}"><h2>${breakable(escaped(chart.title))}</h2>
<figure>
${await pictures(chart)}
<figcaption class="quiet">${escaped(chart.note)}</figcaption>
</figure>
${told ? '' : folded('Figures', figures)}</section>`;
}

function runSection({ label, report }: LabelledRun): string {
  const facts = runFacts(report).map(
    ([name, text]) =>
      `<dt>${name}</dt><dd>${name === 'command' ? `<code>${escaped(text)}</code>` : escaped(text)}</dd>`,
  );
  return `<div class="run"><h3>${escaped(label)}</h3><dl>\n${facts.join('\n')}\n</dl></div>`;
}

/** Remarks that need attention, and the rest folded. */
function wordsSection(set: string, runs: readonly LabelledRun[], several: boolean): string {
  const [wanting, others]: [string[], string[]] = [[], []];
  const cases = runs.flatMap(({ report }) => report.cases);
  for (const { level, wants, text } of remarks({ cases })) {
    const item = `<li><span class="level ${level}">${level === 'none' ? 'note' : level}</span> ${whole(escaped(text))}</li>`;
    (wants ? wanting : others).push(item);
  }
  const lines = (items: readonly string[]): string => `<ul>\n${items.join('\n')}\n</ul>`;
  const title = wanting.length === 0 ? 'Nothing needs attention' : 'The others';
  return [
    ...(several ? [`<h3>${escaped(set)}</h3>`] : []),
    ...(wanting.length === 0 ? [] : [lines(wanting)]),
    ...(others.length === 0 ? [] : [folded(title, lines(others))]),
  ].join('\n');
}

/** For runs whose answer is not text already. */
function words(runs: readonly LabelledRun[]): string {
  if (runs.length === 0) return '';
  const sets = groupBy(runs, setOf);
  const parts = [...sets].map(([set, own]) => wordsSection(set, own, sets.size > 1));
  return `<section id="words"><h2>In words</h2>\n${parts.join('\n')}</section>`;
}

/** A table for each tool, whose cases share columns. */
function allCases(runs: readonly LabelledRun[]): string {
  return [...groupBy(runs, ({ report }) => report.run.tool)]
    .map(([tool, own]) => {
      const { constants, ...table } = caseTable(own);
      const same =
        constants.length === 0 ? '' : `<p>Everywhere: ${escaped(constants.join(', '))}.</p>`;
      const cases = repeatsOf(own.flatMap(({ report }) => report.cases)).size;
      const rows = cases === table.rows.length ? '' : ` in ${String(table.rows.length)} rows`;
      const title = `${tool}: ${countText(cases, 'case')}${rows}`;
      return folded(title, `${same}\n${tableHtml(table, title)}`);
    })
    .join('\n');
}

/** The reports' own answers: one line with its parts. */
function answers(runs: readonly LabelledRun[]): string {
  const titles = ['verdict', 'part', 'figure', 'found'];
  const columns = titles.map((title) => ({
    title,
    align: title === 'figure' ? ('right' as const) : ('left' as const),
  }));
  return runs
    .flatMap(({ label, report }) => {
      const answer = toolOf(report).answer?.(report);
      if (answer === undefined) return [];
      const [word = '', ...after] = answer.text.split(' ');
      const of = runs.length > 1 ? `${escaped(label)}: ` : '';
      const line = `<p>${of}<span class="level ${answer.level}">${escaped(word)}</span> ${breakable(escaped(after.join(' ')))}</p>`;
      const table = (parts: readonly AnswerPart[]): string => {
        const rows = parts.map(({ word: verdict, level, part, figure, text }) => [
          { text: verdict, ...(level === 'none' ? {} : { level }) },
          ...[part, figure, text].map((cell) => ({ text: cell })),
        ]);
        return tableHtml({ columns, rows }, `Parts of ${label}`, true);
      };
      const wanting = answer.parts.filter(({ level }) => level === 'poor' || level === 'fair');
      if (wanting.length === 0) return [line, table(answer.parts)];
      const rest = answer.parts.slice(wanting.length);
      return [
        line,
        table(wanting),
        folded(`The rest: ${countText(rest.length, 'line')}`, table(rest)),
      ];
    })
    .join('\n');
}

const answersItself = ({ report }: LabelledRun): boolean => toolOf(report).answer !== undefined;

/** The medians of the others; for two sets with own answers the figures side by side. */
function medians(runs: readonly LabelledRun[]): string {
  const isPair = runs.every(answersItself) && new Set(runs.map(setOf)).size === 2;
  const shown = isPair
    ? runs.map((run) => ({ ...run, report: { ...run.report, cases: figuresOf(run.report) } }))
    : runs.filter((run) => !answersItself(run));
  if (shown.every(({ report: { cases } }) => cases.length === 0)) return '';
  const answer = headline(shown);
  return `${tableHtml(answer, 'Result', true)}\n<p class="quiet">${escaped(answer.note)}</p>`;
}

function titleOf(runs: readonly LabelledRun[]): string {
  const tools = [...new Set(runs.map(({ report }) => report.run.tool))];
  return `gradlink ${tools.join(', ')}${runs.length > 1 ? `: ${String(runs.length)} runs` : ''}`;
}

export async function toPage(runs: readonly LabelledRun[]): Promise<string> {
  const title = titleOf(runs);
  const sections: string[] = [];
  for (const chart of chartsOf(runs)) {
    sections.push(await chartSection(chart, /^(bandwidth|time|matrix)-/.test(chart.id)));
  }
  const reports: Report[] = runs.map(({ report }) => report);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>${escaped(title)}</title>
<style>
${style}
</style>
</head>
<body>
<header><h1>${escaped(title)}</h1>
<p class="quiet">Written by gradlink report. KiB, MiB and GiB are powers of 1024 bytes, GB/s is 1e9 bytes a second; bandwidths are those of the median time.<span class="screen"> A click on a column sorts.</span></p></header>
<main>
<section id="answer"><h2>Result</h2>
${answers(runs)}
${medians(runs)}</section>
${sections.join('\n')}
${words(runs.filter((run) => !answersItself(run)))}
<section id="cases"><h2>All figures</h2>
${allCases(runs)}
${formulas(reports)
  .map((text) => `<p class="quiet">${escaped(text)}</p>`)
  .join('\n')}</section>
<section id="runs"><h2>What ran where</h2>
${runs.map(runSection).join('\n')}</section>
</main>
<script>${sortScript}</script>
</body>
</html>
`;
}
