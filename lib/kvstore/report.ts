// Bytes moved and time spent in a store with several workers.
import type { ServerReport, WorkerReport } from '../native/dist.js';
import type { NativeKVStore } from '../native/kvstore.js';

/** The work of this worker and the servers since the store was opened. Times in seconds, sizes in bytes. */
export interface StoreReport {
  /** This worker's number. */
  readonly rank: number;
  /**
   * This worker's work. With servers: `copy` (to and from memory that servers read, including sums of devices), `wait`
   * (for servers), and `bytesSent`, `bytesReceived` per server. Without: `copy`, `wait` (for other workers), `reduce`,
   * `update`, and `bytesReduced` (the length of whole arrays, or this worker's rows).
   */
  readonly worker: WorkerReport;
  /** The servers in order; empty without servers. */
  readonly servers: readonly ServerReport[];
}

export async function reportOf(
  store: NativeKVStore,
  rank: number,
  hasServers: boolean,
): Promise<StoreReport> {
  const texts = hasServers ? await store.serverReports() : [];
  const servers = texts.map((text) => JSON.parse(text) as ServerReport);
  return { rank, worker: store.workerReport(), servers };
}
