// Charts as one SVG file for a README or an issue, below each other with titles.
import { chartSvg, type Chart } from '../charts/index.js';
import { fonts } from '../charts/theme.js';
import { escaped } from './escape.js';

const width = 860;
const margin = 16;
const titleHeight = 30;

/** A standalone image needs its own text and background colours. */
const style = `svg { color: #1d2430; } rect.back { fill: #ffffff; }
@media (prefers-color-scheme: dark) { svg { color: #e4e8ee; } rect.back { fill: #14181f; } }`;

function heightOf(svg: string): number {
  return Math.ceil(Number(/^<svg[^>]*\bheight="([\d.]+)"/.exec(svg)?.[1] ?? 0));
}

export async function toSvg(charts: readonly Chart[]): Promise<string> {
  const parts: string[] = [];
  let top = margin;
  for (const chart of charts) {
    const svg = await chartSvg(chart.spec(width - 2 * margin), chart.id);
    parts.push(
      `<text x="${String(margin)}" y="${String(top + 18)}" font-family="${escaped(fonts)}" font-size="16" font-weight="600" fill="currentColor">${escaped(chart.title)}</text>`,
      svg.replace('<svg ', `<svg x="${String(margin)}" y="${String(top + titleHeight)}" `),
    );
    top += titleHeight + heightOf(svg) + margin;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${String(width)}" height="${String(top)}" viewBox="0 0 ${String(width)} ${String(top)}">
<style>${style}</style>
<rect class="back" width="100%" height="100%"/>
${parts.join('\n')}
</svg>
`;
}
