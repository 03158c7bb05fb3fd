// A chart: a Vega-Lite specification, and its figures as a table.
import type { TopLevelSpec } from 'vega-lite';

import type { Report } from '../../results/result.js';
import type { Column } from '../table.js';

export type VegaLiteSpec = TopLevelSpec;

/** A report with its label among several. */
export interface LabelledRun {
  readonly label: string;
  /** The common name of repeated runs, such as their folder; absent: a single run. */
  readonly set?: string;
  readonly report: Report;
}

export interface ChartTable {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
}

export interface Chart {
  /** Unique on its page and usable as a file name: `bandwidth-all-reduce`. */
  readonly id: string;
  readonly title: string;
  /** A description in a sentence or two. */
  readonly note: string;
  /** @param width of the whole picture in CSS pixels */
  spec(width: number): VegaLiteSpec;
  readonly table: ChartTable;
}

export type Datum = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
