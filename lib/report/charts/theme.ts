// The style of charts. Text, axes and grid use the surrounding text colour, so that pictures suit light and dark pages;
// data colours have contrast with both.
import type { Config } from 'vega-lite';

/** The surrounding text colour. */
export const ink = 'currentColor';

export const palette = [
  '#2f7ed8',
  '#d9702b',
  '#219a6a',
  '#b5499b',
  '#8767d8',
  '#a3821f',
  '#1d95a8',
  '#d14b4b',
] as const;

/** From low to high, with readable text colours for both halves. */
export const heat = {
  range: ['#d6e6f5', '#0b4a8f'],
  darkWords: '#10243a',
  lightWords: '#ffffff',
  /** The frame of figures far below their limit. */
  slow: '#d92d20',
} as const;

export const fonts = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
export const fontSize = 12;

/** Dashes of a limit line. */
export const dashes: number[] = [5, 4];

/** Height of a legend below a chart: a line per series, nothing for one. */
export function legendHeight(series: readonly string[]): number {
  const count = new Set(series).size;
  return count > 1 ? count * 16 : 0;
}

export const theme: Config = {
  background: 'transparent',
  // A picture has one label where it is shown; its table has the figures.
  aria: false,
  font: fonts,
  // Text is taller than Vega assumes.
  padding: { left: 4, right: 4, top: 10, bottom: 6 },
  view: { stroke: null },
  axis: {
    domainColor: ink,
    domainOpacity: 0.4,
    tickColor: ink,
    tickOpacity: 0.4,
    gridColor: ink,
    gridOpacity: 0.12,
    labelColor: ink,
    labelFontSize: fontSize,
    labelLimit: 0,
    titleColor: ink,
    titleFontSize: fontSize,
    titleFontWeight: 'normal',
    titleLimit: 0,
  },
  legend: {
    labelColor: ink,
    labelFontSize: fontSize,
    labelLimit: 0,
    titleColor: ink,
    titleFontSize: fontSize,
    titleLimit: 0,
    orient: 'bottom',
    direction: 'vertical',
    // A band and its line look alike.
    symbolOpacity: 1,
    title: null,
  },
  range: { category: [...palette] },
  text: { color: ink, fontSize },
};
