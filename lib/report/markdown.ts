// Escapes foreign text for Markdown, so that it cannot add links, images, elements or table cells.
import { printable } from '../printable.js';
import type { Column } from './table.js';

/** Line breaks become spaces. */
function oneLine(text: string): string {
  return printable(text.replaceAll(/[\r\n]+/g, ' '));
}

/** Underscores within a word and stars between spaces have no effect: `all_reduce` and `S * 4` stay. */
const markup = /[\\`<|#[\]]|&(?=[#\w])|\*(?=\S)|(?<=\S)\*|(?<!\w)_|_(?!\w)/g;

export function plain(text: string): string {
  return oneLine(text).replaceAll(markup, '\\$&');
}

/** As code, in a fence longer than any run of backticks in it. */
export function code(text: string): string {
  const line = oneLine(text);
  const longest = (line.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length), 0);
  const fence = '`'.repeat(longest + 1);
  // A backtick at an end would join the fence, and a space at both ends is dropped.
  const pad = /^[ `]|[ `]$/.test(line) ? ' ' : '';
  return `${fence}${pad}${line}${pad}${fence}`;
}

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
