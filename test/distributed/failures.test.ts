// Workers and servers that die, leave, are late or never come.
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { Scripts } from '../support/processes.js';
import { busy, fails, helpers, runJob, startJob } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

const size = { workers: 3, servers: 2 };

describe('dist_sync', () => {
  it(
    'a worker that is killed is named on all others and on the servers',
    { tags: 'smoke' },
    async () => {
      const job = startJob(scripts, { ...size, serversEnd: true }, busy('dist_sync'));
      await Promise.all(job.workers.map((worker) => worker.said('begun')));
      job.workers[1]!.child.kill('SIGKILL');
      const { workers, servers } = await job.ended;
      for (const worker of [workers[0]!, workers[2]!]) {
        expect(worker).toMatchObject({ code: 0, signal: null });
        expect(worker.reports[0]).toMatchObject({ code: 'ERR_PEER_LOST', rank: 1 });
        expect(worker.reports[1]).toBe('ERR_PEER_LOST');
        expect((worker.reports[0] as Error).message).toMatch(/worker 1/);
      }
      for (const server of servers) {
        expect(server).toMatchObject({ code: 1, signal: null });
        expect(server.reports).toMatchObject([{ code: 'ERR_PEER_LOST', rank: 1 }]);
      }
    },
  );

  it('an error that nobody catches is a death', async () => {
    const { workers } = await runJob(scripts, { workers: 2, servers: 1 }, [
      busy('dist_sync'),
      fails,
    ]);
    expect(workers[0]!.reports[0]).toMatchObject({ code: 'ERR_PEER_LOST', rank: 1 });
    expect(workers[1]).toMatchObject({ code: 1 });
  });

  // Servers wait for a worker there, and answer nobody meanwhile.
  it.each([
    ['barrier', 1, 'kv.barrier()', /^barrier: worker 1 .*2000 ms/],
    ['setOptimizer', 0, `kv.setOptimizer(new SGD())`, /worker 0 .*optimizer/],
  ])('a worker that never comes to %s is named, not a server', async (_, absent, call, said) => {
    const job = startJob(
      scripts,
      { workers: 2, servers: 2, serversEnd: true },
      `
      ${helpers}
      import { SGD } from ${JSON.stringify(join(import.meta.dirname, '../../dist/index.js'))};
      const kv = await KVStore.create('dist_sync', { timeoutMs: 2000 });
      await kv.init('a', filled(10, 0));
      if (kv.rank === ${String(absent)}) {
        setInterval(() => undefined, 1000);
      } else {
        report(await outcome(${call}));
        await kv.close();
      }
    `,
    );
    const first = await job.workers[1 - absent]!.ended;
    job.workers[absent]!.child.kill('SIGKILL');
    await job.ended;
    expect(first.reports[0]).toMatchObject({ code: 'ERR_TIMEOUT', rank: absent });
    expect((first.reports[0] as Error).message).toMatch(said);
  });
});

describe('at the start', () => {
  it('a worker or server that never comes is named', async () => {
    // The server that does come has to be there by then, on a busy machine, too.
    const create = `report(await outcome(KVStore.create('dist_sync', { startTimeoutMs: 5000 })));`;
    const [late, without] = await Promise.all([
      runJob(scripts, { workers: 2, servers: 1 }, [create, '']),
      runJob(scripts, { workers: 1, servers: 1 }, create, { GRADLINK_NUM_SERVERS: '2' }),
    ]);
    expect(late.workers[0]!.reports[0]).toMatchObject({ code: 'ERR_TIMEOUT', rank: 1 });
    expect((late.workers[0]!.reports[0] as Error).message).toMatch(/^worker 1\b/);
    expect(without.workers[0]!.reports[0]).toMatchObject({ code: 'ERR_TIMEOUT', rank: 2 });
    expect((without.workers[0]!.reports[0] as Error).message).toMatch(/^server 1\b/);
  });
});
