// Labels at the ends of lines, so that readers need no legend.
import { fontSize } from './theme.js';
import type { Datum } from './types.js';

/** The end of a line. */
export interface LineEnd {
  readonly series: string;
  /** Whether it is a dashed limit line, which is labelled as such. */
  readonly isLimit?: boolean;
  readonly x: number;
  readonly y: number;
}

/** The vertical axis. */
export interface VerticalScale {
  readonly least: number;
  readonly most: number;
  readonly log: boolean;
}

/** Height of a text line, as a share of the plot. */
const gap = 0.075;
const most = 8;
/** Labels wider than this share leave too little of the picture. */
const widest = 0.35;
/** The dot before the words with its margins. */
const dotWidth = 22;

/** Moves labels at least {@link gap} apart in order, within the plot. */
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

/** Width of the labels right of a plot, in pixels. */
export function labelsWidth(labels: readonly Datum[] | undefined): number {
  return labels === undefined ? 0 : widthOf(labels.map(({ text }) => String(text)));
}

/**
 * Labels for the ends of lines, positioned in units of the data. Vega reserves the space. Undefined if a legend is
 * better: for one line, many, or long names.
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

/** The last point of each line. */
export function endsOf(points: readonly LineEnd[]): LineEnd[] {
  const ends = new Map<string, LineEnd>();
  for (const point of points) {
    const end = ends.get(point.series);
    if (end === undefined || point.x >= end.x) ends.set(point.series, point);
  }
  return [...ends.values()];
}

/**
 * A dot in the line's colour, or two dashes for a limit, with the name beside it in the text colour.
 *
 * @param sharedLimit whether the limit applies to all lines and has no line's colour
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
