// What lines are called, at their ends: a reader need not look from a line to a legend and back.
import { fontSize } from './theme.js';
import type { Datum } from './types.js';

/** Where a line ends. */
export interface LineEnd {
  readonly series: string;
  readonly x: number;
  readonly y: number;
}

/** How the vertical axis goes. */
export interface VerticalScale {
  readonly least: number;
  readonly most: number;
  readonly log: boolean;
}

/** Of the height of a plot: what a line of words takes. */
const gap = 0.075;
const most = 8;
/** Labels wider than this share of a picture leave too little of it. */
const widest = 0.35;
/** The dot before the words, and what is free around it. */
const dotWidth = 22;

/** Labels of at least {@link gap} apart, in the order of their lines; none can be pushed off the plot. */
function spread(shares: readonly number[]): number[] {
  const up: number[] = [];
  for (const share of shares) up.push(Math.max(share, (up.at(-1) ?? -Infinity) + gap));
  let above = 1 + gap;
  return up
    .toReversed()
    .map((share) => (above = Math.min(share, above - gap)))
    .toReversed();
}

/**
 * Labels for the ends of lines: each with its place in units of the data. Vega makes room for them. Undefined where a legend is better: one line, many, or words too long for the
 * picture.
 */
export function lineLabels(
  ends: readonly LineEnd[],
  { least, most: top, log }: VerticalScale,
  width: number,
): readonly Datum[] | undefined {
  const longest = Math.max(0, ...ends.map(({ series }) => series.length)) * fontSize * 0.6;
  const needed = longest + dotWidth;
  if (ends.length < 2 || ends.length > most || needed > width * widest) return undefined;
  const span = log ? Math.log(top / least) : top - least;
  if (!(span > 0)) return undefined;
  const shareOf = (y: number): number => (log ? Math.log(y / least) : y - least) / span;
  const placeOf = (share: number): number =>
    log ? least * Math.exp(share * span) : least + share * span;
  const sorted = ends.toSorted((a, b) => a.y - b.y);
  const places = spread(sorted.map(({ y }) => shareOf(y)));
  const right = Math.max(...ends.map(({ x }) => x));
  return sorted.map(({ series }, index): Datum => ({
    series,
    labelX: right,
    labelY: placeOf(places[index]!),
  }));
}

/** Points of lines, the last of each. */
export function endsOf(points: readonly LineEnd[]): LineEnd[] {
  const ends = new Map<string, LineEnd>();
  for (const point of points) {
    const end = ends.get(point.series);
    if (end === undefined || point.x >= end.x) ends.set(point.series, point);
  }
  return [...ends.values()];
}

/** A dot in the colour of its line, and the words beside it in that of the text. */
export function labelLayers<X extends object, C extends object>(
  labels: readonly Datum[] | undefined,
  x: X,
  color: C,
) {
  if (labels === undefined) return [];
  const place = {
    x: { ...x, field: 'labelX' },
    y: { field: 'labelY', type: 'quantitative' },
  } as const;
  const data = { values: [...labels] };
  const mark = { type: 'text', align: 'left', baseline: 'middle' } as const;
  return [
    {
      data,
      mark: { ...mark, dx: 7, text: '●' },
      encoding: { ...place, color: { ...color, legend: null } },
    },
    { data, mark: { ...mark, dx: 19 }, encoding: { ...place, text: { field: 'series' } } },
  ] as const;
}
