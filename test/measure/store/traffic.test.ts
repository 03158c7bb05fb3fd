import { describe, expect, it } from 'vitest';

import type { StoreReport } from '../../../lib/kvstore/report.js';
import type { StoreJob } from '../../../lib/measure/store/job.js';
import { storeTraffic } from '../../../lib/measure/store/traffic.js';
import { trafficFields } from '../../../lib/report/traffic.js';

/** Worker 0 of a job whose worker 1 brings `theirs`. */
function jobWith(theirs: readonly number[]): StoreJob {
  return {
    rank: 0,
    size: 2,
    barrier: () => Promise.resolve(),
    gather: (mine) => Promise.resolve([mine, theirs]),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** With two pipelines. */
function server(index: number, bytes: number, merge: number): StoreReport['servers'][number] {
  return {
    server: index,
    shards: 2,
    elements: 100,
    bytesReceived: bytes,
    bytesSent: bytes,
    pipelines: 2,
    merge,
    update: merge / 2,
    wait: 0,
  };
}

const before: StoreReport = {
  rank: 0,
  worker: { copy: 1, wait: 1, bytesSent: [10, 10], bytesReceived: [0, 0] },
  servers: [server(0, 20, 1), server(1, 20, 1)],
};

describe('storeTraffic', () => {
  it('takes what came before the timed batches off', async () => {
    const after: StoreReport = {
      rank: 0,
      worker: { copy: 1.5, wait: 1.9, bytesSent: [110, 60], bytesReceived: [100, 50] },
      servers: [server(0, 220, 1.5), server(1, 70, 2)],
    };
    const theirs = [0.6, 150, 150, 0.25, 0.8, 0, 0];
    const traffic = await storeTraffic(jobWith(theirs), before, after, [0.5, 0.5], [0.6, 0.4]);
    expect(traffic.batches).toBe(2);
    expect(traffic.workers.map(({ bytesSent }) => bytesSent)).toEqual([150, 150]);
    expect(traffic.workers.map(({ bytesReceived }) => bytesReceived)).toEqual([150, 150]);
    expect(traffic.workers.map(({ copySeconds }) => copySeconds)).toEqual([0.5, 0.25]);
    expect(traffic.servers.map(({ bytesReceived }) => bytesReceived)).toEqual([200, 50]);
    expect(traffic.servers.map(({ mergeSeconds }) => mergeSeconds)).toEqual([0.25, 0.5]);
    expect(traffic.slowestRank).toBe(1);
    // 150 bytes out of and into each of the two workers in a second.
    expect(traffic.networkBytesPerSecond).toBeCloseTo(600);
    // Of 0.9 s of waiting in a second the busiest server explains 0.5 s of merging and 0.25 s of updating.
    expect(traffic.shares).toEqual({
      copy: 0.5,
      wire: expect.closeTo(0.15) as number,
      merge: 0.5,
      update: 0.25,
    });
    const lines = trafficFields(traffic).map(([name, text]) => `${name}: ${text}`);
    // Of a batch.
    expect(lines[0]).toMatch(/^worker 0: .* 500\.0 ms.* 75 B.* 75 B.* 250\.0 ms.* 450\.0 ms/);
    expect(lines[2]).toMatch(/^server 0: .* 100 B.* 100 B.* 125\.0 ms.* 62\.50 ms/);
    expect(lines).toContainEqual(expect.stringMatching(/^balance: .*\b75 %/));
    expect(lines).toContainEqual(expect.stringMatching(/^slowest: worker 1, 20 %/));
    expect(lines).toContainEqual(
      expect.stringMatching(/^shares: copy 50 %, wire 15 %, merge 50 %, update 25 %/),
    );
  });

  it('counts what an all-reduce exchanges where there are no servers', async () => {
    const report = (bytesReduced: number, seconds: number): StoreReport => ({
      rank: 0,
      worker: { copy: 0, wait: seconds, reduce: seconds, update: seconds, bytesReduced },
      servers: [],
    });
    const theirs = [0.5, 100, 100, 0, 0.25, 0.25, 0];
    const traffic = await storeTraffic(jobWith(theirs), report(8, 0), report(108, 0.1), [0.5], [1]);
    // 2 (n - 1) / n of 100 bytes, n = 2.
    expect(traffic.workers.map(({ bytesSent }) => bytesSent)).toEqual([100, 100]);
    expect(traffic.servers).toEqual([]);
    expect(traffic.shares.wire).toBeCloseTo(0.5);
    expect(traffic.shares.update).toBeCloseTo(0.1);
  });
});
