// Tables of the page: cells that are sorted by what they mean, not by how they are written.
import { breakable, escaped } from './escape.js';
import type { Column } from '../table.js';

export interface Cell {
  readonly text: string;
  /** What it is sorted by; absent: the text. */
  readonly value?: number | undefined;
  /** A verdict, in its colour. */
  readonly level?: string;
}

/** Columns with the cells below them. */
export interface PageTable {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): PageTable {
  return { columns, rows: rows.map((row) => row.map((text) => ({ text }))) };
}

function classes(column: Column | undefined, level?: string): string {
  const names = [
    ...(column?.align === 'right' ? ['right'] : []),
    ...(level === undefined ? [] : ['level', level]),
  ];
  return names.length === 0 ? '' : ` class="${names.join(' ')}"`;
}

function bodyCell(
  { text, value, level }: Cell,
  column: Column | undefined,
  wraps: boolean,
): string {
  const key = value === undefined ? '' : ` data-value="${String(value)}"`;
  return `<td${classes(column, level)}${key}>${whole(wraps ? breakable(escaped(text)) : escaped(text))}</td>`;
}

/** From its first digit on, or a text of digits would be looked at once for each. */
const figure =
  /(?<![\d.])\d[\d.]{0,30}(?:\/s)? (?:%|[KMGTk]?i?B(?:\/s)?|[mnu]?s|bytes|images\/s)(?![\w/])/g;

/** No line, not even one of a narrow page, ends between a number and its unit. */
export function whole(html: string): string {
  return html.replaceAll(figure, '<span class="figure">$&</span>');
}

/**
 * In a box that scrolls sideways where the table is wider than the page.
 *
 * @param wraps whether names may go on in the next line, so that a phone shows all columns
 */
export function tableHtml({ columns, rows }: PageTable, name: string, wraps = false): string {
  const head = columns.map(
    (column) => `<th scope="col"${classes(column)}>${escaped(column.title)}</th>`,
  );
  const body = rows.map(
    (row) => `<tr>${row.map((cell, index) => bodyCell(cell, columns[index], wraps)).join('')}</tr>`,
  );
  return `<div class="scroll" tabindex="0" role="region" aria-label="${escaped(name)}"><table class="sorted"><thead><tr>${head.join('')}</tr></thead><tbody>\n${body.join('\n')}\n</tbody></table></div>`;
}
