/** Figures that others published, with where they stand. */

/** A series of throughputs: samples a second of all workers together, by number of workers. */
export interface PublishedSeries {
  readonly name: string;
  readonly batchSize: number;
  readonly throughput: Readonly<Record<number, number>>;
}

export interface PublishedCurves {
  readonly source: string;
  readonly machine: string;
  readonly workersPerHost: number;
  readonly series: readonly PublishedSeries[];
}
