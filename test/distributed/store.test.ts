// What the stores with servers promise beyond MXNet: order, errors, placement, commands, several stores.
import { afterAll, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { helpers, runJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

describe('dist_sync', () => {
  it(
    'sums the devices of a worker, whatever order the workers issue keys in',
    { tags: 'smoke' },
    async () => {
      const { workers } = await runJob(
        scripts,
        { workers: 3, servers: 2 },
        `
      ${helpers}
      const keys = Array.from({ length: 30 }, (_, index) => 'key' + index);
      const kv = await KVStore.create('dist_sync', { devices: 2, bigArrayBound: 20 });
      await kv.init(keys, keys.map((_, index) => filled(index + 1, 0)));
      const order = keys.map((_, index) => (index * (2 * kv.rank + 1)) % keys.length);
      const values = keys.map((_, index) => [filled(index + 1, index), filled(index + 1, kv.rank)]);
      const outs = keys.map((_, index) => [filled(index + 1, 0), filled(index + 1, 0)]);
      await Promise.all(
        [...new Set([...order, ...keys.keys()])].flatMap((index) => [
          kv.push(keys[index], values[index], { priority: index * (kv.rank - 1) }),
          kv.pull(keys[index], outs[index]),
        ]),
      );
      report(outs.every((two, index) => two.every((out) => same(out, 3 * index + 3))));
      await kv.close();
      `,
      );
      for (const worker of workers) expect(worker).toMatchObject({ ...well, reports: [true] });
    },
  );

  it('tells where keys lie, what was moved, and hands commands on', { tags: 'smoke' }, async () => {
    const { workers, servers } = await runJob(
      scripts,
      { workers: 2, servers: 2 },
      `
      ${helpers}
      const kv = await KVStore.create('dist_sync', { bigArrayBound: 1000 });
      await kv.init(['big', 'a', 'b'], [filled(2001, 0), filled(500, 0), filled(500, 0)]);
      const out = filled(2001, 0);
      await kv.pushPull('big', filled(2001, 1), out);
      await kv.barrier();
      report(kv.placement());
      const { rank, worker, servers } = await kv.report();
      report({
        rank,
        sent: worker.bytesSent.map((bytes) => bytes > 4000),
        received: worker.bytesReceived.map((bytes) => bytes > 4000),
        servers: servers.map(({ server, shards, elements }) => ({ server, shards, elements })),
      });
      report(kv.numDeadNodes());
      if (kv.rank === 1) await kv.sendCommandToServers('note: this');
      if (kv.rank === 1) await kv.sendCommandToServers(7, '');
      await kv.barrier();
      await kv.close();
      `,
    );
    for (const [rank, worker] of workers.entries()) {
      expect(worker).toMatchObject(well);
      const [placement, moved, dead] = worker.reports as [
        { key: string; server: number; first: number; count: number }[],
        { servers: { elements: number }[] },
        number,
      ];
      // Even but for whole words of compressed codes.
      const big = placement.filter(({ key }) => key === 'big');
      expect(big.map(({ first, count }) => first + count)).toEqual([big[0]!.count, 2001]);
      expect(Math.abs(big[0]!.count - 1000)).toBeLessThan(32);
      const small = placement.filter(({ key }) => key !== 'big').map(({ server }) => server);
      expect(small.sort()).toEqual([0, 1]);
      expect(moved).toMatchObject({ rank, sent: [true, true], received: [true, true] });
      expect(moved.servers.map(({ elements }) => elements)).toEqual(
        big.map(({ count }) => count + 500),
      );
      expect(dead).toBe(0);
    }
    for (const [number, server] of servers.entries()) {
      expect(server).toMatchObject(well);
      expect(server.reports.slice(0, 2)).toEqual([
        { worker: 1, head: 0, command: 'note: this' },
        { worker: 1, head: 7, command: '' },
      ]);
      expect(server.reports[2]).toMatchObject({ store: { server: number } });
    }
  });

  it('of pushes and pulls of rows moves the rows alone', async () => {
    const { workers } = await runJob(
      scripts,
      { workers: 2, servers: 2 },
      `
      ${helpers}
      import { RowSparse, SGD } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
      // Cut over both servers, in pieces that rows of 24 elements do not fit.
      const rows = (indices) =>
        new RowSparse({ indices, data: filled(24 * indices.length, 1), shape: [20_000, 24] });
      const kv = await KVStore.create('dist_sync', { bigArrayBound: 10_000 });
      await kv.init('big', rows([]));
      await kv.setOptimizer(new SGD());
      const moved = async () => {
        const { worker } = await kv.report();
        const sum = (list) => list.reduce((a, b) => a + b, 0);
        return [sum(worker.bytesSent), sum(worker.bytesReceived)];
      };
      const ids = Array.from({ length: 10 }, (_, i) => i * 1999);
      const before = await moved();
      for (let step = 0; step < 10; ++step) {
        await kv.push('big', rows(ids));
        await kv.rowSparsePull('big', rows([]), ids);
      }
      const after = await moved();
      report(after.map((bytes, i) => bytes - before[i]));
      await kv.close();
      `,
    );
    for (const worker of workers) {
      expect(worker).toMatchObject(well);
      for (const bytes of worker.reports[0] as number[]) {
        // Ten times ten rows of 96 bytes, of 1.9 MB.
        expect(bytes).toBeGreaterThanOrEqual(9600);
        expect(bytes).toBeLessThan(50_000);
      }
    }
  });

  it('two stores at once, and one after the other', async () => {
    const { workers, servers } = await runJob(
      scripts,
      { workers: 2, servers: 1 },
      `
      ${helpers}
      const first = await KVStore.create('dist_sync');
      const second = await KVStore.create('dist_async');
      await Promise.all([first.init(1, filled(2, 5)), second.init(1, filled(2, 6))]);
      const outs = [filled(2, 0), filled(2, 0), filled(2, 0)];
      await Promise.all([first.pull(1, outs[0]), second.pull(1, outs[1])]);
      await Promise.all([first.close(), second.close()]);
      const third = await KVStore.create('dist_sync');
      await third.init(1, filled(2, 7));
      await third.pull(1, outs[2]);
      await third.close();
      report(outs.map(([one]) => one));
      `,
    );
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports: [[5, 6, 7]] });
    expect(servers[0]).toMatchObject({ ...well, reports: [{}, {}, {}] });
  });

  it('workers that opened different stores are told apart', async () => {
    const make = (type: string): string => `
      report(await outcome(KVStore.create('${type}')));
    `;
    const { workers, servers } = await runJob(
      scripts,
      { workers: 2, servers: 1, serversEnd: true },
      [make('dist_sync'), make('dist_async')],
    );
    for (const worker of workers) {
      expect(worker.reports[0]).toMatchObject({ code: 'ERR_MISMATCH', rank: 1 });
      expect((worker.reports[0] as Error).message).toMatch(
        /\bsynchronous.*worker 0.*asynchronous.*worker 1/,
      );
    }
    expect(servers[0]).toMatchObject({ code: 1, reports: [{ code: 'ERR_MISMATCH' }] });
  });
});
