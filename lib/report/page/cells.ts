// Tables of the page, whose cells sort by value rather than text.
import { breakable, escaped } from './escape.js';
import type { Column } from '../table.js';

export interface Cell {
  readonly text: string;
  /** The sort key; absent: the text. */
  readonly value?: number | undefined;
  /** A verdict, which sets the colour. */
  readonly level?: string;
}

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

/** Starts at a first digit, which keeps long digit texts linear. */
const figure =
  /(?<![\d.])\d[\d.]{0,30}(?:\/s)? (?:%|[KMGTk]?i?B(?:\/s)?|[mnu]?s|bytes|images\/s)(?![\w/])/g;

/** Keeps numbers and units on one line. */
export function whole(html: string): string {
  return html.replaceAll(figure, '<span class="figure">$&</span>');
}

/**
 * In a box that scrolls sideways if the table is wider than the page.
 *
 * @param wraps whether names may wrap, so that a phone shows all columns
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
