/** Charts of reports: Vega-Lite specifications with their tables, and SVG of them. */
import { serverCharts, splitCharts } from './bars.js';
import { matrixCharts } from './matrix.js';
import { sampleCharts } from './samples.js';
import { speedupCharts } from './speedup.js';
import { sweepCharts } from './sweep.js';
import type { Chart, LabelledRun } from './types.js';

export { chartSvg } from './render.js';
export { palette, theme } from './theme.js';
export type { Chart, ChartTable, Datum, LabelledRun, VegaLiteSpec } from './types.js';

/** Every chart that these runs have figures for. For a check only maps: small parts would hide them. */
export function chartsOf(runs: readonly LabelledRun[]): Chart[] {
  const others = runs.filter(({ report }) => report.run.tool !== 'check');
  return [
    ...sweepCharts(others),
    ...matrixCharts(runs),
    ...[speedupCharts, splitCharts, serverCharts, sampleCharts].flatMap((make) => make(others)),
  ];
}
