// The work of a store's workers and servers, a line each, and the time shares.
import type { StoreTraffic } from '../results/store-traffic.js';
import { bandwidthText, percentText, sizeText, timeText } from '../results/units.js';

/** Name and text of each line. Bytes and seconds are per batch. */
export function trafficFields(traffic: StoreTraffic): [name: string, text: string][] {
  const { batches, workers, servers, shares, slowestRank } = traffic;
  const size = (bytes: number): string => sizeText(Math.round(bytes / batches));
  const time = (seconds: number): string => timeText(seconds / batches);
  const lines: [string, string][] = workers.map((worker) => [
    `worker ${worker.rank}`,
    [
      `median ${timeText(worker.medianSeconds)}`,
      `sends ${size(worker.bytesSent)}`,
      `receives ${size(worker.bytesReceived)}`,
      `copies ${time(worker.copySeconds)}`,
      `waits ${time(worker.waitSeconds)} a batch`,
    ].join(', '),
  ]);
  for (const server of servers) {
    lines.push([
      `server ${server.server}`,
      [
        `holds ${server.elements} elements in ${server.shards} parts`,
        `receives ${size(server.bytesReceived)}`,
        `sends ${size(server.bytesSent)}`,
        `merges ${time(server.mergeSeconds)}`,
        `updates ${time(server.updateSeconds)} a batch`,
      ].join(', '),
    ]);
  }
  if (servers.length > 1) lines.push(['balance', balanceText(traffic)]);
  if (workers.length > 1) lines.push(['slowest', slowestText(traffic, slowestRank)]);
  lines.push(
    ['network', `${bandwidthText(traffic.networkBytesPerSecond)} = ${traffic.networkFormula}`],
    [
      'shares',
      (['copy', 'wire', 'merge', 'update'] as const)
        .map((part) => `${part} ${percentText(shares[part])}`)
        .join(', ') + ' of the time, the busiest of each',
    ],
  );
  return lines;
}

function balanceText({ servers }: StoreTraffic): string {
  const bytes = servers.map(({ bytesReceived, bytesSent }) => bytesReceived + bytesSent);
  const most = Math.max(...bytes);
  const apart = most > 0 ? 1 - Math.min(...bytes) / most : 0;
  return `the servers' bytes are within ${percentText(apart)} of each other`;
}

function slowestText({ workers }: StoreTraffic, rank: number): string {
  const medians = workers.map(({ medianSeconds }) => medianSeconds);
  const fastest = Math.min(...medians);
  const more = fastest > 0 ? Math.max(...medians) / fastest - 1 : 0;
  return `worker ${rank}, ${percentText(more)} slower than the fastest`;
}
