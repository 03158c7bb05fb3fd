// Texts that others wrote in Markdown: none of them makes a link, a picture, an element or a cell of its own.
import { printable } from '../printable.js';
import type { Column } from './table.js';

/** What would end the line ends a word only. */
function oneLine(text: string): string {
  return printable(text.replaceAll(/[\r\n]+/g, ' '));
}

/** An underscore within a word means nothing, nor does a star between spaces: `all_reduce` and `S * 4` stay as they are. */
const markup = /[\\`<|#[\]]|&(?=[#\w])|\*(?=\S)|(?<=\S)\*|(?<!\w)_|_(?!\w)/g;

/** As words. */
export function plain(text: string): string {
  return oneLine(text).replaceAll(markup, '\\$&');
}

/** As code, in a fence longer than any run of backticks in it. */
export function code(text: string): string {
  const line = oneLine(text);
  const longest = (line.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 0);
  const fence = '`'.repeat(longest + 1);
  // A backtick at an end would belong to the fence, and of spaces at both ends one is taken away.
  const pad = /^[ `]|[ `]$/.test(line) ? ' ' : '';
  return `${fence}${pad}${line}${pad}${fence}`;
}

/** The columns and rows of a text's table as Markdown. */
export function markdownTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(plain).join(' | ')} |`;
  return [
    line(columns.map(({ title }) => title)),
    `| ${columns.map(({ align }) => (align === 'left' ? '---' : '---:')).join(' | ')} |`,
    ...rows.map((row) => line(columns.map((_, index) => row[index] ?? ''))),
  ];
}
