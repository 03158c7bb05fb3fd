// Renders Vega-Lite to SVG without a browser. Loads Vega for the first chart.
import { theme } from './theme.js';
import type { VegaLiteSpec } from './types.js';

/**
 * Halves Vega's output: removes the roles of groups (which it calls pictures, without labels), most classes and
 * defaults, empty paths and groups, and repeated fonts; rounds numbers to a hundredth of a pixel.
 */
function slim(svg: string): string {
  let text = svg
    .replaceAll(
      / (?:role="graphics-[a-z]+"|aria-roledescription="[^"]*"|class="(?![^"]*role-axis-label)[^"]*")/g,
      '',
    )
    .replaceAll(/ (?:opacity="1"|stroke-width="1"|[xy]2="0"|pointer-events="none")/g, '')
    .replaceAll(/<path[^>]* d="(?:M0,0h0v0h0Z)?"[^>]*\/>/g, '')
    // Not the readable numbers.
    .replaceAll(/ (?:d|transform)="[^"]*"/g, (value) =>
      value.replaceAll(/\b\d{1,9}\.\d{3,20}/g, (number) =>
        String(Number(Number(number).toFixed(2))),
      ),
    );
  for (const name of ['font-family', 'font-size']) {
    const [most = ''] = new RegExp(` ${name}="[^"]*"`).exec(text) ?? [];
    if (most !== '') text = text.replaceAll(most, '').replace('<svg', `<svg${most}`);
  }
  return text.replaceAll(/(?:<g(?: transform="translate\(0,0\)")?><\/g>)+/g, '');
}

/**
 * Draws a chart. Text and axes use the surrounding text colour (`currentColor`).
 *
 * @param id makes the picture's references unique within a page
 * @returns an `<svg>` element
 */
export async function chartSvg(spec: VegaLiteSpec, id: string): Promise<string> {
  const { compile, errorLevel, logger, parse, View } = await import('./vega.js');
  const compiled = compile(spec, { config: theme, logger: logger(errorLevel) }).spec;
  const view = new View(parse(compiled), { renderer: 'none', logLevel: errorLevel });
  try {
    return slim(await view.toSVG())
      .replaceAll(/\bid="([^"]+)"/g, `id="${id}-$1"`)
      .replaceAll(/url\(#([^)]+)\)/g, `url(#${id}-$1)`);
  } finally {
    view.finalize();
  }
}
