// A Vega-Lite specification as SVG, without a browser. Vega is loaded when the first chart is drawn.
import { theme } from './theme.js';
import type { VegaLiteSpec } from './types.js';

/**
 * Draws a chart. Words and axes have the colour of the text around the picture (`currentColor`).
 *
 * @param id makes the picture's own references unique where several stand on one page
 * @returns an `<svg>` element
 */
export async function chartSvg(spec: VegaLiteSpec, id: string): Promise<string> {
  const { compile, errorLevel, logger, parse, View } = await import('./vega.js');
  const compiled = compile(spec, { config: theme, logger: logger(errorLevel) }).spec;
  const view = new View(parse(compiled), { renderer: 'none', logLevel: errorLevel });
  try {
    const svg = await view.toSVG();
    // Vega calls each group of marks a picture of its own, the empty ones too, and gives it no label.
    return svg
      .replaceAll(/ (?:role="graphics-[a-z]+"|aria-roledescription="[^"]*")/g, '')
      .replaceAll(/\bid="([^"]+)"/g, `id="${id}-$1"`)
      .replaceAll(/url\(#([^)]+)\)/g, `url(#${id}-$1)`);
  } finally {
    view.finalize();
  }
}
