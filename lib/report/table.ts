export interface Column {
  readonly title: string;
  /** Numbers to the right, words to the left. */
  readonly align: 'left' | 'right';
}

/** Lines of a table whose columns are as wide as their widest cell; titles first, two spaces between columns. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string[] {
  const titles = columns.map(({ title }) => title);
  const widths = columns.map((_, index) =>
    Math.max(...[titles, ...rows].map((row) => (row[index] ?? '').length)),
  );
  return [titles, ...rows].map((row) =>
    columns
      .map(({ align }, index) => {
        const cell = row[index] ?? '';
        const width = widths[index] ?? 0;
        return align === 'left' ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd(),
  );
}

/** The same as a Markdown table. */
export function markdownTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(markdownCell).join(' | ')} |`;
  return [
    line(columns.map(({ title }) => title)),
    `| ${columns.map(({ align }) => (align === 'left' ? '---' : '---:')).join(' | ')} |`,
    ...rows.map((row) => line(columns.map((_, index) => row[index] ?? ''))),
  ];
}

/** A bar would end the cell, a line break the row. */
function markdownCell(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll(/\r?\n/g, ' ');
}
