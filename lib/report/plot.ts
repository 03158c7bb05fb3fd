// A line plot in a terminal with Braille characters, which have 2 x 4 dots each.
import { max, median, min } from 'simple-statistics';

/** The dots of a character: columns of rows from the top. */
const dots = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
] as const;
const blank = 0x2800;

export interface PlotSize {
  /** Characters per line, including the axis. */
  readonly columns: number;
  readonly rows: number;
}

/** Fits values to the columns of dots, by means of neighbours if there are more. */
function fitted(values: readonly number[], count: number): number[] {
  if (values.length <= count) return [...values];
  return Array.from({ length: count }, (_, index) => {
    const part = values.slice(
      Math.floor((index * values.length) / count),
      Math.floor(((index + 1) * values.length) / count),
    );
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

function short(value: number): string {
  const size = Math.abs(value);
  if (value !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** Lines of text with an axis from the least to the greatest value; empty without values. */
export function plotLines(values: readonly number[], { columns, rows }: PlotSize): string[] {
  if (values.length === 0) return [];
  const least = min(values);
  const most = max(values);
  const labels = [short(most), short((least + most) / 2), short(least)];
  const margin = Math.max(...labels.map((label) => label.length)) + 2;
  const width = Math.max(4, columns - margin);
  const points = fitted(values, width * 2);
  const cells = Array.from({ length: rows }, () => new Array<number>(width).fill(blank));
  const height = rows * 4;
  const level = (value: number): number =>
    most > least ? Math.round(((most - value) / (most - least)) * (height - 1)) : height >> 1;
  const set = (x: number, y: number): void => {
    const row = cells[y >> 2];
    const dot = dots[(x & 1) as 0 | 1][(y & 3) as 0 | 1 | 2 | 3];
    if (row !== undefined) row[x >> 1] = (row[x >> 1] ?? blank) | dot;
  };
  points.forEach((value, x) => {
    const from = level(points[x - 1] ?? value);
    const to = level(value);
    // A vertical stroke towards the previous point fills gaps in steep lines.
    const step = Math.sign(from - to);
    for (let y = to; step !== 0 && y !== from; y += step) set(x, y);
    set(x, to);
  });
  const middle = (rows - 1) >> 1;
  return cells.map((row, index) => {
    const label =
      index === 0 ? labels[0] : index === rows - 1 ? labels[2] : index === middle ? labels[1] : '';
    const end = row.findLastIndex((letter) => letter !== blank) + 1;
    const drawn = String.fromCodePoint(...row.slice(0, end));
    return `${(label ?? '').padStart(margin - 2)} ${label === '' ? '│' : '┤'}${drawn}`;
  });
}

/** A plot with its name above, and the latest, least, median and greatest value below. */
export function namedPlot(
  { name, unit, values }: { name: string; unit: string; values: readonly number[] },
  size: PlotSize,
): string[] {
  const inUnit = unit === '' ? '' : `, ${unit}`;
  return [
    `${name}${inUnit}`,
    ...plotLines(values, size),
    [
      `${String(values.length)} points`,
      ...(values.length === 0
        ? []
        : [
            `last ${short(values.at(-1) ?? 0)}`,
            `min ${short(min(values))}`,
            `median ${short(median(values))}`,
            `max ${short(max(values))}`,
          ]),
    ].join(', '),
  ];
}
