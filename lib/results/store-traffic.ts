// What the workers and servers of a store did while it was timed: a part of a report.

/** One worker of a store in all timed batches together. */
export interface WorkerTraffic {
  /** From 0. */
  rank: number;
  /** Of its own batches. */
  medianSeconds: number;
  /** To and from servers; without servers, from and to the other workers. */
  bytesSent: number;
  /** In all batches. */
  bytesReceived: number;
  /** Arrays to and from what is sent, sums of devices included. */
  copySeconds: number;
  /** Nothing to do but wait for others. */
  waitSeconds: number;
  /** Summing with the other workers, and the optimizer; 0 where servers do it. */
  reduceSeconds: number;
  /** Of storing sums, the optimizer's steps included; without servers. */
  updateSeconds: number;
}

/** One server of a store in all timed batches together; seconds are those of all its threads. */
export interface ServerTraffic {
  /** Its number, from 0. */
  server: number;
  /** What it holds: parts of keys, and their elements. */
  shards: number;
  /** That it holds. */
  elements: number;
  /** In all batches, from all workers. */
  bytesReceived: number;
  /** In all batches, to all workers. */
  bytesSent: number;
  /** As updateSeconds, of a pipeline on average: they work side by side. */
  mergeSeconds: number;
  /** Of the optimizer, a pipeline's mean. */
  updateSeconds: number;
  /** Of its receiving thread. */
  waitSeconds: number;
}

/** Shares of the batches' time, each at most 1. Parts work side by side: together they may exceed 1, or stay below. */
export interface TimeShares {
  /** The busiest worker's copying. */
  copy: number;
  /** Waiting that no merging and no updating explains. */
  wire: number;
  /** The busiest server's summing. */
  merge: number;
  /** The busiest server's, or worker's, updating. */
  update: number;
}

/** What a store of several workers moved and where its time went. */
export interface StoreTraffic {
  /** That were timed. */
  batches: number;
  /** In the order of ranks. */
  workers: readonly WorkerTraffic[];
  /** In their order; none of a store without. */
  servers: readonly ServerTraffic[];
  /** Of all workers together. */
  networkBytesPerSecond: number;
  /** What the rate is made of. */
  networkFormula: string;
  /** The worker whose batches took longest. */
  slowestRank: number;
  /** Of the time of all batches, from 0 to 1. */
  shares: TimeShares;
}
