// The work of a store's workers and servers in the timed batches: a part of a report.

/** One worker of a store, over all timed batches. */
export interface WorkerTraffic {
  /** The worker's number, from 0. */
  rank: number;
  /** Median time of its own batches. */
  medianSeconds: number;
  /** To servers, or without servers to the other workers. */
  bytesSent: number;
  /** In all batches. */
  bytesReceived: number;
  /** Copies to and from communication memory, including sums of devices. */
  copySeconds: number;
  /** Waiting for others. */
  waitSeconds: number;
  /** Summing with the other workers, and the optimizer; 0 with servers. */
  reduceSeconds: number;
  /** Storing sums, including optimizer steps; without servers. */
  updateSeconds: number;
}

/** One server of a store, over all timed batches; seconds of all its threads. */
export interface ServerTraffic {
  /** Its number, from 0. */
  server: number;
  /** Number of whole and partial keys. */
  shards: number;
  /** Their elements. */
  elements: number;
  /** In all batches, from all workers. */
  bytesReceived: number;
  /** In all batches, to all workers. */
  bytesSent: number;
  /** Summing, averaged over its parallel pipelines. */
  mergeSeconds: number;
  /** The optimizer, averaged over its pipelines. */
  updateSeconds: number;
  /** Of its receiving thread. */
  waitSeconds: number;
}

/** Shares of the batches' time, each at most 1. Parts run in parallel, so the total may be above or below 1. */
export interface TimeShares {
  /** The busiest worker's copying. */
  copy: number;
  /** Waiting not explained by merging or updating. */
  wire: number;
  /** The busiest server's summing. */
  merge: number;
  /** The busiest server's or worker's updating. */
  update: number;
}

/** Bytes moved and time spent in a store with several workers. */
export interface StoreTraffic {
  /** Number of timed batches. */
  batches: number;
  /** By rank. */
  workers: readonly WorkerTraffic[];
  /** In order; empty without servers. */
  servers: readonly ServerTraffic[];
  /** Of all workers together. */
  networkBytesPerSecond: number;
  /** The formula of the rate. */
  networkFormula: string;
  /** The worker with the longest batches. */
  slowestRank: number;
  /** Shares of the time of all batches, from 0 to 1. */
  shares: TimeShares;
}
