// What lines are called, at their ends: a reader need not look from a line to a legend and back.
import { fontSize } from './theme.js';
import type { Datum } from './types.js';

/** Where a line ends. */
export interface LineEnd {
  readonly series: string;
  /** Whether it is the dashed line of a limit; such a line is called so. */
  readonly isLimit?: boolean;
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

function textOf({ series, isLimit }: LineEnd): string {
  return isLimit === true ? 'limit' : series;
}

function widthOf(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => text.length)) * fontSize * 0.6 + dotWidth;
}

/** Pixels that labels take right of a plot. */
export function labelsWidth(labels: readonly Datum[] | undefined): number {
  return labels === undefined ? 0 : widthOf(labels.map(({ text }) => String(text)));
}

/**
 * Labels for the ends of lines: each with its place in units of the data. Vega makes room for them. Undefined where a
 * legend is better: one line, many, or words too long for the picture.
 */
export function lineLabels(
  ends: readonly LineEnd[],
  { least, most: top, log }: VerticalScale,
  width: number,
): readonly Datum[] | undefined {
  const texts = ends.map(textOf);
  if (ends.length < 2 || ends.length > most || widthOf(texts) > width * widest) return undefined;
  const span = log ? Math.log(top / least) : top - least;
  if (!(span > 0)) return undefined;
  const shareOf = (y: number): number => (log ? Math.log(y / least) : y - least) / span;
  const placeOf = (share: number): number =>
    log ? least * Math.exp(share * span) : least + share * span;
  const sorted = ends.toSorted((a, b) => a.y - b.y);
  const places = spread(sorted.map(({ y }) => shareOf(y)));
  const right = Math.max(...ends.map(({ x }) => x));
  return sorted.map((end, index): Datum => ({
    series: end.series,
    text: textOf(end),
    isLimit: end.isLimit === true,
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

/**
 * A dot in the colour of its line, two dashes for a limit, and the words beside it in the colour of the text.
 *
 * @param sharedLimit whether the limit is that of all lines, in the colour of none
 */
export function labelLayers<X extends object, C extends object>(
  labels: readonly Datum[] | undefined,
  x: X,
  color: C,
  sharedLimit = false,
) {
  if (labels === undefined) return [];
  const place = {
    x: { ...x, field: 'labelX' },
    y: { field: 'labelY', type: 'quantitative' },
  } as const;
  const mark = { type: 'text', align: 'left', baseline: 'middle' } as const;
  const coloured = { ...place, color: { ...color, legend: null } };
  return [
    {
      data: { values: labels.filter(({ isLimit }) => isLimit !== true) },
      mark: { ...mark, dx: 7, text: '●' },
      encoding: coloured,
    },
    {
      data: { values: labels.filter(({ isLimit }) => isLimit === true) },
      mark: { ...mark, dx: 6, text: '╌' },
      encoding: sharedLimit ? place : coloured,
    },
    {
      data: { values: [...labels] },
      mark: { ...mark, dx: 19 },
      encoding: { ...place, text: { field: 'text' } },
    },
  ] as const;
}
