// Tables as text, as wide as their cells or the terminal.
export interface Column {
  readonly title: string;
  /** Numbers right, words left. */
  readonly align: 'left' | 'right';
  /** Without enough room the lowest weight is dropped first. Columns without a weight stay. */
  readonly weight?: number;
  /** Its name if the title is not enough. */
  readonly name?: string;
}

/** A column with a fixed width, for rows that are printed before all cells are known. */
export interface FixedColumn extends Column {
  /** Printed below the title. */
  readonly unit: string;
  readonly width: number;
}

/** Tables are not made narrower than this. */
export const narrowestTable = 60;
const gap = 2;
/** Minimum width of wrapped text. */
const narrowestWords = 12;

/** Indices of the columns that fit, dropping the lowest weights first, and the last among equals. */
export function fittingColumns(
  columns: readonly Pick<Column, 'weight'>[],
  widths: readonly number[],
  room: number,
  between = gap,
): number[] {
  const kept = columns.map((_, index) => index);
  const total = (): number =>
    widthOf(
      kept.map((index) => widths[index] ?? 0),
      between,
    );
  while (total() > Math.max(room, narrowestTable)) {
    const weights = kept.map((index) => columns[index]?.weight ?? Infinity);
    const lightest = Math.min(...weights);
    if (lightest === Infinity) break;
    kept.splice(weights.lastIndexOf(lightest), 1);
  }
  return kept;
}

function widthOf(widths: readonly number[], between = gap): number {
  return widths.reduce((sum, width) => sum + width, between * Math.max(0, widths.length - 1));
}

/** One line that names the dropped columns; empty if all are shown. */
export function leftOutLines(columns: readonly Column[], kept: readonly number[], room: number) {
  const names = columns.flatMap(({ title, name = title }, index) =>
    kept.includes(index) || name === '' ? [] : [name],
  );
  if (names.length === 0) return [];
  const width = String(Math.max(room, narrowestTable));
  return [`left out at ${width} columns: ${[...new Set(names)].join(', ')}; --json has all`];
}

/** A table of {@link FixedColumn}s within a width, one character of which is the comment sign. */
export class FixedTable {
  /** Indices of the shown columns. */
  readonly kept: readonly number[];
  readonly #columns: readonly FixedColumn[];
  readonly #room: number;

  constructor(columns: readonly FixedColumn[], room: number) {
    const widths = columns.map(({ width }) => width);
    this.kept = fittingColumns(columns, widths, room - 1, 0);
    this.#columns = columns;
    this.#room = room;
  }

  /** Without the leading sign or space, which the caller adds. */
  row(cells: readonly string[]): string {
    const padded = this.kept.map((index) => {
      const [cell = '', { align, width }] = [cells[index], this.#columns[index]!];
      return align === 'right' ? cell.padStart(width) : `${' '.repeat(gap)}${cell}`.padEnd(width);
    });
    return padded.join('');
  }

  /** The dropped columns, `above`, then titles and units, all as comments. */
  head(above: readonly string[] = []): string[] {
    return [
      ...leftOutLines(this.#columns, this.kept, this.#room).map((line) => ` ${line}`),
      ...above,
      ...(['title', 'unit'] as const).map((part) =>
        this.row(this.#columns.map((one) => one[part])),
      ),
    ].map((line) => `#${line}`.trimEnd());
  }
}

/** Wraps a cell at spaces, and within longer words. */
function wrappedCell(text: string, width: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width);
    const end = space > 0 ? space : width;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

/** Narrows text columns, the widest first, until they fit. */
function narrowed(columns: readonly Column[], widths: readonly number[], room: number): number[] {
  const narrow = [...widths];
  for (let over = widthOf(narrow) - Math.max(room, narrowestTable); over > 0; over -= 1) {
    const words = narrow.map((width, index) => (columns[index]?.align === 'left' ? width : 0));
    const widest = Math.max(...words);
    if (widest <= narrowestWords) break;
    narrow[words.indexOf(widest)] = widest - 1;
  }
  return narrow;
}

function isEmpty(rows: readonly (readonly string[])[], index: number): boolean {
  return rows.every((row) => ['', '-'].includes(row[index] ?? ''));
}

/**
 * A table with columns as wide as their widest cell: titles first, two spaces between columns. If it is too wide, empty
 * columns go first, then those with the lowest weights (named in a line), and text wraps.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  room = Infinity,
): string[] {
  const all = [columns.map(({ title }) => title), ...rows];
  const widths = columns.map((_, index) =>
    Math.max(...all.map((row) => (row[index] ?? '').length)),
  );
  const telling = columns.map((column, index) =>
    isEmpty(rows, index) ? { ...column, weight: -1, name: '' } : column,
  );
  const kept = fittingColumns(telling, widths, room);
  const shown = kept.flatMap((index) => columns[index] ?? []);
  const narrow = narrowed(
    shown,
    kept.map((index) => widths[index] ?? 0),
    room,
  );
  const lines = all.flatMap((row) => {
    const cells = kept.map((index, at) => wrappedCell(row[index] ?? '', narrow[at] ?? 0));
    const height = Math.max(1, ...cells.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) =>
      shown
        .map(({ align }, at) => {
          const cell = cells[at]?.[line] ?? '';
          const width = narrow[at] ?? 0;
          return align === 'left' ? cell.padEnd(width) : cell.padStart(width);
        })
        .join(' '.repeat(gap))
        .trimEnd(),
    );
  });
  return [...lines, ...leftOutLines(telling, kept, room)];
}

/** A matrix: if it is too wide, its columns are split into blocks that repeat the first column. */
export function matrixLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  room = Infinity,
  indent = '',
): string[] {
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...rows.map((row) => (row[index] ?? '').length)),
  );
  const blocks: number[][] = [];
  for (let index = 1; index < columns.length; index += 1) {
    const block = blocks.at(-1);
    const next = [0, ...(block ?? []), index].map((at) => widths[at] ?? 0);
    if (block !== undefined && indent.length + widthOf(next) <= Math.max(room, narrowestTable))
      block.push(index);
    else blocks.push([index]);
  }
  return blocks.flatMap((block, number) => [
    ...(number === 0 ? [] : ['']),
    ...tableLines(
      [0, ...block].flatMap((index) => columns[index] ?? []),
      rows.map((row) => [0, ...block].map((index) => row[index] ?? '')),
      room,
    ).map((line) => indent + line),
  ]);
}
