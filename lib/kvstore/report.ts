// What a store of several workers has moved, and where its time went.
import type { ServerReport, WorkerReport } from '../native/dist.js';
import type { NativeKVStore } from '../native/kvstore.js';

/** What this worker and the servers did since the store was made. Times are seconds, sizes bytes. */
export interface StoreReport {
  /** This worker. */
  readonly rank: number;
  /**
   * This worker's part. With servers: `copy` (arrays to and from the memory that servers read, sums of devices
   * included), `wait` (for servers), and `bytesSent`, `bytesReceived` by server. Without: `copy`, `wait` (for other
   * workers), `reduce` (in the sums), `update`, and `bytesReduced` (of whole arrays their length, of rows what this worker
   * gives).
   */
  readonly worker: WorkerReport;
  /** The servers in order; none for a store without. */
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
