// The work of each worker and server of a store in the timed batches, and the parts that took the time.
import type { StoreReport } from '../../kvstore/report.js';
import type { ServerReport, WorkerReport } from '../../native/dist.js';
import { perSecond } from '../../results/bandwidth.js';
import type {
  ServerTraffic,
  StoreTraffic,
  TimeShares,
  WorkerTraffic,
} from '../../results/store-traffic.js';
import { describe } from '../../results/statistics.js';
import type { StoreJob } from './job.js';

function sum(values: readonly number[] = []): number {
  return values.reduce((total, value) => total + value, 0);
}

/** A worker's counters as numbers, for exchange. */
const workerFields: readonly ((worker: WorkerReport) => number)[] = [
  // Without servers, a sum of n workers moves 2(n-1)/n of its bytes out of and into each.
  ({ bytesSent, bytesReduced = 0 }) => (bytesSent === undefined ? bytesReduced : sum(bytesSent)),
  ({ bytesReceived, bytesReduced = 0 }) =>
    bytesReceived === undefined ? bytesReduced : sum(bytesReceived),
  ({ copy }) => copy,
  ({ wait }) => wait,
  ({ reduce = 0 }) => reduce,
  ({ update = 0 }) => update,
];

function serverDifference(before: ServerReport, after: ServerReport): ServerTraffic {
  return {
    server: after.server,
    shards: after.shards,
    elements: after.elements,
    bytesReceived: after.bytesReceived - before.bytesReceived,
    bytesSent: after.bytesSent - before.bytesSent,
    mergeSeconds: (after.merge - before.merge) / after.pipelines,
    updateSeconds: (after.update - before.update) / after.pipelines,
    waitSeconds: after.wait - before.wait,
  };
}

function most<T>(of: readonly T[], value: (one: T) => number): number {
  return Math.max(0, ...of.map(value));
}

/**
 * The busiest worker's and server's seconds as shares of all batches' seconds. They work in parallel, so shares may
 * exceed 1 in total but not each. A worker's waiting without merging or updating is transfer time.
 */
function sharesOf(
  workers: readonly WorkerTraffic[],
  servers: readonly ServerTraffic[],
  seconds: number,
): TimeShares {
  const merge = most(servers, ({ mergeSeconds }) => mergeSeconds);
  const update = Math.max(
    most(servers, ({ updateSeconds }) => updateSeconds),
    most(workers, ({ updateSeconds }) => updateSeconds),
  );
  const waiting = most(workers, ({ waitSeconds }) => waitSeconds);
  const wire =
    servers.length > 0
      ? Math.max(0, waiting - merge - update)
      : waiting + most(workers, ({ reduceSeconds }) => reduceSeconds);
  const share = (part: number): number => (seconds > 0 ? part / seconds : 0);
  return {
    copy: share(most(workers, ({ copySeconds }) => copySeconds)),
    wire: share(wire),
    merge: share(merge),
    update: share(update),
  };
}

/**
 * Collective.
 *
 * @param before the counters at the start of the first timed batch
 * @param samples this worker's timed batches in seconds
 * @param jobSamples the job's timed batches in seconds
 */
export async function storeTraffic(
  job: StoreJob,
  before: StoreReport,
  after: StoreReport,
  samples: readonly number[],
  jobSamples: readonly number[],
): Promise<StoreTraffic> {
  const mine = workerFields.map((read) => read(after.worker) - read(before.worker));
  const all = await job.gather([describe(samples).medianSeconds, ...mine]);
  const jobSeconds = sum(jobSamples);
  const exchanged = after.servers.length === 0 ? (2 * (job.size - 1)) / job.size : 1;
  const workers = all.map((figures, rank): WorkerTraffic => {
    const [median = 0, sent = 0, received = 0, copy = 0, wait = 0, reduce = 0, update = 0] =
      figures;
    return {
      rank,
      medianSeconds: median,
      bytesSent: sent * exchanged,
      bytesReceived: received * exchanged,
      copySeconds: copy,
      waitSeconds: wait,
      reduceSeconds: reduce,
      updateSeconds: update,
    };
  });
  const servers = after.servers.map((server, i) =>
    serverDifference(before.servers[i] ?? server, server),
  );
  const moved = sum(workers.map(({ bytesSent, bytesReceived }) => bytesSent + bytesReceived));
  const slowest = workers.reduce((a, b) => (b.medianSeconds > a.medianSeconds ? b : a));
  return {
    batches: samples.length,
    workers,
    servers,
    networkBytesPerSecond: perSecond(moved, jobSeconds),
    networkFormula: 'bytes sent and received by all workers / t',
    slowestRank: slowest.rank,
    shares: sharesOf(workers, servers, jobSeconds),
  };
}
