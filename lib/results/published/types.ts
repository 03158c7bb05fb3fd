/** Published figures with their sources. */

/** A series of throughputs: samples per second of all workers, by number of workers. */
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
