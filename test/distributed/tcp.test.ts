// The stores of several workers over TCP: workers by torchrun's variables, servers by hand.
import { afterEach, expect, it } from 'vitest';

import { netns, onHosts } from '../support/hosts.js';
import { Scripts, well } from '../support/processes.js';
import { exchanges, runJob, startTcpJob } from './support.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

const size = { workers: 2, servers: 2 };
const perNode = (count: string): Record<string, string> => ({ GRADLINK_RANKS_PER_NODE: count });

it('sums, places keys as in shared memory, and ends the servers with the workers', async () => {
  const source = `${exchanges} report(kv.placement()); await kv.close();`;
  const here = await runJob(scripts, size, source);
  const { reports } = here.workers[0]!;
  expect(reports.slice(0, 6)).toEqual(Array.from({ length: 6 }, () => true));
  expect(reports).toHaveLength(7);
  for (const env of [{}, perNode('1'), perNode('2')]) {
    const job = await startTcpJob(scripts, size, source, env);
    const { workers, servers } = await job.ended;
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
    for (const server of servers) expect(server).toMatchObject(well);
  }
});

it('leaves the servers out of worlds, and of stores that need none', async () => {
  const source = `
    const world = await Communicator.world();
    report([world.backend, world.size, ...(await world.allReduce(Int32Array.of(world.rank + 1)))]);
    await world.close();
    const kv = await KVStore.create('allreduce');
    report([kv.numWorkers, kv.numServers]);
    await kv.close();
  `;
  const { workers, servers } = await (await startTcpJob(scripts, size, source)).ended;
  const reports = [
    ['tcp', 2, 3],
    [2, 0],
  ];
  for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
  for (const server of servers) expect(server).toMatchObject({ ...well, reports: [] });
});

it('a server that never comes is named, by stores and worlds', async () => {
  const stays = { ...size, servers: 1 };
  const env = { GRADLINK_NUM_SERVERS: '2' };
  const source = `
    report(await outcome(KVStore.create('dist_sync', { startTimeoutMs: 3000 })));
    report(await outcome(Communicator.world({ timeoutMs: 300 })));
  `;
  const { workers, servers } = await (await startTcpJob(scripts, stays, source, env)).ended;
  for (const { reports } of workers) {
    expect(reports[0]).toMatchObject({ code: 'ERR_TIMEOUT', rank: 3 });
    expect((reports[0] as Error).message).toMatch(/^server 1 .*127\.0\.0\.1:/);
    expect(reports[1]).toMatchObject({ code: 'ERR_TIMEOUT' });
  }
  // The server that came has ended by then.
  expect((workers[0]!.reports[1] as Error).message).toMatch(/^(worker 1|server 0)\b/);
  expect(servers[0]).toMatchObject({ code: 1, reports: [{ code: 'ERR_TIMEOUT', rank: 3 }] });
});

it('a server that is not told where rank 0 listens says so', async () => {
  const job = await startTcpJob(scripts, { workers: 0, servers: 1 }, '', {
    GRADLINK_NUM_WORKERS: '2',
    MASTER_ADDR: '',
  });
  const { servers } = await job.ended;
  expect(servers[0]).toMatchObject({ code: 1, reports: [{ code: 'ERR_UNSUPPORTED' }] });
  expect((servers[0]!.reports[0] as Error).message).toMatch(/this server.*MASTER_ADDR/);
});

it('crosses hosts', async (context) => {
  await onHosts(context, 'ds', async (name, address) => {
    const hosts = ['a', 'b', 'b', 'a'].map((host) => [netns, 'enter', `${name}-${host}`]);
    const source = `${exchanges} await kv.close();`;
    const job = await startTcpJob(scripts, { ...size, hosts }, source, {}, address);
    const { workers, servers } = await job.ended;
    const reports = Array.from({ length: 6 }, () => true);
    for (const worker of workers) expect(worker).toMatchObject({ ...well, reports });
    for (const server of servers) expect(server).toMatchObject(well);
  });
});
