// One self-contained page: no script, nothing from a network.
import type { Report } from '../../results/result.js';
import { chartSvg, chartsOf, type Chart, type LabelledRun } from '../charts/index.js';
import { caseCells, caseColumns } from '../render.js';
import type { Column } from '../table.js';
import { escaped } from './escape.js';
import { style } from './style.js';
import { formulas, remarks, runFacts } from './words.js';

const widths = { wide: 860, narrow: 344 } as const;
/** A table of more rows is folded up on screens. */
const mostOpenRows = 40;

/** What the reader's program may fetch or run: nothing. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

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

function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const cell = (tag: 'th' | 'td', text: string, column: Column | undefined): string =>
    `<${tag}${column?.align === 'right' ? ' class="right"' : ''}>${escaped(text)}</${tag}>`;
  const head = columns.map((column) => cell('th', column.title, column)).join('');
  const body = rows.map(
    (row) => `<tr>${row.map((text, index) => cell('td', text, columns[index])).join('')}</tr>`,
  );
  return `<div class="scroll" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>\n${body.join('\n')}\n</tbody></table></div>`;
}

/** Folded up where it is long; open in the file where it is short, so that it is printed. */
function folded(title: string, content: string, rows: number): string {
  return `<details${rows <= mostOpenRows ? ' open' : ''}><summary>${escaped(title)}</summary>\n${content}\n</details>`;
}

async function chartSection(chart: Chart): Promise<string> {
  const { columns, rows } = chart.table;
  return `<section id="${chart.id}"><h2>${escaped(chart.title)}</h2>
<figure>
${await pictures(chart)}
<figcaption class="quiet">${escaped(chart.note)}</figcaption>
</figure>
${folded('Figures', table(columns, rows), rows.length)}</section>`;
}

function runSection({ label, report }: LabelledRun): string {
  const facts = runFacts(report).map(
    ([name, text]) =>
      `<dt>${name}</dt><dd>${name === 'command' ? `<code>${escaped(text)}</code>` : escaped(text)}</dd>`,
  );
  return `<div class="run"><h3>${escaped(label)}</h3><dl>\n${facts.join('\n')}\n</dl></div>`;
}

function wordsSection({ label, report }: LabelledRun, several: boolean): string {
  const items = remarks(report).map(
    ({ level, text }) =>
      `<li><span class="level ${level}">${level === 'none' ? 'note' : level}</span> ${escaped(text)}</li>`,
  );
  return `${several ? `<h3>${escaped(label)}</h3>\n` : ''}<ul>\n${items.join('\n')}\n</ul>`;
}

function allCases(runs: readonly LabelledRun[]): string {
  const several = runs.length > 1;
  const columns: Column[] = several
    ? [{ title: 'run', align: 'left' }, ...caseColumns]
    : [...caseColumns];
  const rows = runs.flatMap(({ label, report }) =>
    report.cases.map((result) => [...(several ? [label] : []), ...caseCells(result)]),
  );
  return folded(`All ${String(rows.length)} cases`, table(columns, rows), rows.length);
}

function titleOf(runs: readonly LabelledRun[]): string {
  const tools = [...new Set(runs.map(({ report }) => report.run.tool))];
  return `gradlink ${tools.join(', ')}${runs.length > 1 ? `: ${String(runs.length)} runs` : ''}`;
}

/** The whole page, ending in a line break. */
export async function toPage(runs: readonly LabelledRun[]): Promise<string> {
  const title = titleOf(runs);
  const sections: string[] = [];
  for (const chart of chartsOf(runs)) sections.push(await chartSection(chart));
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
<p class="quiet">Written by gradlink report. GB is 1e9 bytes; bandwidths are those of the median time.</p></header>
<main>
${runs.map(runSection).join('\n')}
<section id="words"><h2>In words</h2>
${runs.map((run) => wordsSection(run, runs.length > 1)).join('\n')}</section>
${sections.join('\n')}
<section id="cases"><h2>All figures</h2>
${allCases(runs)}
${formulas(reports)
  .map((text) => `<p class="quiet">${escaped(text)}</p>`)
  .join('\n')}</section>
</main>
</body>
</html>
`;
}
