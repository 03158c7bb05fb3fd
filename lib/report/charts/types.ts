// What a chart is: a reviewable Vega-Lite specification, and the same figures as a table.
import type { TopLevelSpec } from 'vega-lite';

import type { Report } from '../../results/result.js';
import type { Column } from '../table.js';

export type VegaLiteSpec = TopLevelSpec;

/** A report and what it is called where several are shown together. */
export interface LabelledRun {
  readonly label: string;
  /** What runs that repeat one another are called together, those of a folder; absent: it is by itself. */
  readonly set?: string;
  readonly report: Report;
}

export interface ChartTable {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
}

export interface Chart {
  /** Unique on its page, fit for a file name: `bandwidth-all-reduce`. */
  readonly id: string;
  readonly title: string;
  /** What is seen, in a sentence or two. */
  readonly note: string;
  /** @param width of the whole picture in CSS pixels */
  spec(width: number): VegaLiteSpec;
  readonly table: ChartTable;
}

/** Rows of a specification's data. */
export type Datum = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
