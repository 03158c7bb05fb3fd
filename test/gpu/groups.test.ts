// Worlds of processes that hold several GPUs each.
import { afterEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { cutLink, onHosts } from '../support/hosts.js';
import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { well, type Ended } from '../support/processes.js';
import { startOverTcp } from '../support/tcp.js';
import { ends, startOnHosts } from '../support/world-groups.js';

const gpus = gpuDevices().length;

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** How many GPUs each process of the job lists, the next ones that are free. */
const listed = (counts: readonly number[]): string => `
  const counts = ${JSON.stringify(counts)};
  const process_ = Number(process.env.RANK ?? process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK);
  const firstGpu = counts.slice(0, process_).reduce((sum, one) => sum + one, 0);
  const own = Array.from({ length: counts[process_] }, (_, i) => firstGpu + i);
`;

/** Every kind of call, on numbers whose sums are exact. */
const everything = (counts: readonly number[]): string => `
  ${listed(counts)}
  const group = await Communicator.world({ backend: 'nccl', gpus: own });
  const { ranks, size } = group;
  const wrong = [];
  const filled = (valuesOf) => Promise.all(ranks.map(async (rank, i) => {
    const values = valuesOf(rank);
    const buffer = DeviceBuffer.alloc(group.gpus[i], 'float64', values.length);
    await buffer.copyFrom(Float64Array.from(values));
    return buffer;
  }));
  const expect = async (what, buffers, valueAt) => {
    for (const [i, buffer] of buffers.entries()) {
      const array = await buffer.copyTo();
      const at = array.findIndex((value, j) => value !== valueAt(j, ranks[i]));
      if (at >= 0) wrong.push(what + '[' + at + '] of rank ' + ranks[i] + ' is ' + array[at]);
    }
  };
  const count = 1000;
  const mine = (i, rank) => (i % 5) + rank;
  const all = Array.from({ length: size }, (_, rank) => rank);
  const sumOf = (i) => all.reduce((sum, rank) => sum + mine(i, rank), 0);
  const data = (length = count) => filled((rank) => Array.from({ length }, (_, i) => mine(i, rank)));
  const root = size - 1;
  const rootAt = ranks.indexOf(root);
  await expect('allReduce', await group.allReduce(await data()), sumOf);
  await expect('scaled', await group.allReduce(await data(), { scale: ranks.map((rank) => rank + 1) }), (i) =>
    all.reduce((sum, rank) => sum + mine(i, rank) * (rank + 1), 0));
  await expect('broadcast', await group.broadcast(await data(), { root }), (i) => mine(i, root));
  await expect('allGather', await group.allGather(await data()), (i) => mine(i % count, Math.floor(i / count)));
  await expect('reduceScatter', await group.reduceScatter(await data(size * count)), (i, rank) => sumOf(rank * count + i));
  await expect('allToAll', await group.allToAll(await data(size * count)), (i, rank) =>
    mine(rank * count + (i % count), Math.floor(i / count)));
  await expect('scan', await group.scan(await data()), (i, rank) =>
    all.slice(0, rank + 1).reduce((sum, r) => sum + mine(i, r), 0));
  // Only who holds the root has its array.
  const reduced = await group.reduce(await data(), { root });
  const gathered = await group.gather(await data(), { root });
  if ((rootAt >= 0) !== (reduced !== undefined) || (rootAt >= 0) !== (gathered !== undefined)) wrong.push('root');
  const atRoot = async (what, buffer, valueAt) => {
    const array = await buffer.copyTo();
    if (array.some((value, i) => value !== valueAt(i))) wrong.push(what);
  };
  if (rootAt >= 0) {
    await atRoot('reduce', reduced, sumOf);
    await atRoot('gather', gathered, (i) => mine(i % count, Math.floor(i / count)));
  }
  const source = rootAt < 0 ? undefined : (await data(size * count))[rootAt];
  await expect('scatter', await group.scatter(source, { root, out: await data() }), (i, rank) => mine(rank * count + i, root));
  // Rank r brings r + 1 elements.
  const lengths = all.map((rank) => rank + 1);
  const parts = await group.allGatherV(await filled((rank) => Array(rank + 1).fill(rank)), { counts: lengths });
  await expect('allGatherV', parts.map((one) => one.data), (i) => all.flatMap((rank) => Array(rank + 1).fill(rank))[i]);
  const given = await group.gatherV(await filled((rank) => Array(rank + 1).fill(rank)), { root, counts: lengths });
  if ((rootAt >= 0) !== (given !== undefined)) wrong.push('gatherV');
  if (given !== undefined) await atRoot('gatherV', given.data, (i) => all.flatMap((rank) => Array(rank + 1).fill(rank))[i]);
  group.allReduceSync(await data());
  await group.barrier();
  const short = await filled(() => Array(ranks.includes(0) ? 3 : 4).fill(1));
  const { code, message } = await outcome(group.allReduce(short));
  report([ranks, size, group.backend, group.memory, wrong, counts.length === 1 || code === 'ERR_MISMATCH', message ?? '']);
  await group.close();
`;

function expectAll(ended: readonly Ended[], counts: readonly number[]): void {
  for (const one of ended) expect(one).toMatchObject(well);
  const reports = ended.flatMap((one) => one.reports) as [number[], ...unknown[]][];
  reports.sort((one, other) => one[0][0]! - other[0][0]!);
  const size = counts.reduce((sum, one) => sum + one, 0);
  let next = 0;
  expect(reports).toEqual(
    counts.map((count) => [
      Array.from({ length: count }, () => next++),
      size,
      'nccl',
      'gpu',
      [],
      true,
      expect.any(String),
    ]),
  );
  if (counts.length === 1) return;
  const first = Array.from({ length: counts[0]! }, (_, rank) => rank).join(', ');
  for (const one of reports) {
    expect(one.at(-1)).toContain(
      `${counts[0] === 1 ? 'rank' : 'ranks'} ${first} called allReduce(count 3`,
    );
  }
}

describe('a world of processes with several GPUs', () => {
  it.for([{ counts: [3] }, { counts: [1, 2] }, { counts: [2, 2] }, { counts: [2, 1, 1] }])(
    'over TCP computes, $counts GPUs in its processes',
    async ({ counts }, context) => {
      if (gpus < counts.reduce((sum, one) => sum + one, 0)) context.skip('needs more GPUs');
      const env = scripts.env({ LOCAL_WORLD_SIZE: '1', GRADLINK_RANKS_PER_NODE: '1' });
      expectAll(
        await ends(await startOverTcp(scripts, counts.length, everything(counts), env)),
        counts,
      );
      scripts.expectNothingLeft();
    },
  );

  it.for(flavours)('over MPI computes, under mpirun of %s', async (flavour, context) => {
    if (gpus < 3) context.skip('needs three GPUs');
    const mpirun = mpirunOf(flavour, context);
    const env = scripts.env({ GRADLINK_TRANSPORT: 'mpi', GRADLINK_RANKS_PER_NODE: '1' });
    const ended = await startJob(scripts, mpirun, 2, everything([1, 2]), env).ended;
    expect(ended).toMatchObject(well);
    const reports = (ended.reports as [number[], ...unknown[]][]).map((one) => one.slice(0, 6));
    reports.sort((one, other) => (one[0] as number[])[0]! - (other[0] as number[])[0]!);
    expect(reports).toEqual([
      [[0], 3, 'nccl', 'gpu', [], true],
      [[1, 2], 3, 'nccl', 'gpu', [], true],
    ]);
    scripts.expectNothingLeft();
  });

  it('meets in the memory of one host, and with processes that hold one rank', async (context) => {
    if (gpus < 3) context.skip('needs three GPUs');
    const source = `
      const alone = process.env.GRADLINK_RANK === '0';
      const world = await Communicator.world({ backend: 'nccl', ...(alone ? { gpu: 2 } : { gpus: [0, 1] }) });
      const buffers = world.gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 100));
      await Promise.all(buffers.map((one) => one.fill(1)));
      await world.allReduce(alone ? buffers[0] : buffers);
      report([world.rank ?? world.ranks, world.size, (await buffers[0].copyTo())[99]]);
      await world.close();
    `;
    const ended = await ends(scripts.startRanks(2, source, scripts.env()));
    expect(ended.map((one) => one.reports)).toEqual([[[0, 3, 3]], [[[1, 2], 3, 3]]]);
    scripts.expectNothingLeft();
  });

  it('is a world of its own where nobody started it', async () => {
    const { reports } = await scripts.run(
      `const group = await Communicator.world({ backend: 'nccl', gpus: [0] });
       report([group.size, group.ranks, group.gpus, 'pairGossip' in group, 'window' in group]);
       await group.close();`,
      scripts.env(),
    );
    expect(reports).toEqual([[1, [0], [0], true, false]]);
    scripts.expectNothingLeft();
  });

  it('tells all processes which one listed a GPU twice', async (context) => {
    if (gpus < 2) context.skip('needs two GPUs');
    const source = `
      const gpus = process.env.RANK === '1' ? [0, 1, 0] : [2];
      report(await outcome(Communicator.world({ backend: 'nccl', gpus })));
    `;
    const ended = await ends(await startOverTcp(scripts, 2, source, scripts.env()));
    expect(ended[1]!.reports).toEqual([
      expect.objectContaining({
        code: 'ERR_INVALID_ARG_VALUE',
        message: expect.stringMatching(/gpu:0.*twice/) as string,
      }),
    ]);
    expect(ended[0]!.reports).toEqual([
      expect.objectContaining({
        code: 'ERR_ABORTED',
        rank: 1,
        message: expect.stringMatching(/process 1.*gpu:0.*twice/) as string,
      }),
    ]);
  });

  it('names a process that dies, and one that does not come, with their ranks', async (context) => {
    if (gpus < 3) context.skip('needs three GPUs');
    const source = `
      ${listed([1, 2])}
      const group = await Communicator.world({ backend: 'nccl', gpus: own, timeoutMs: 60_000 });
      const data = group.gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 1000));
      await group.allReduce(data);
      if (process_ === 1) process.kill(process.pid, process.env.SIGNAL);
      report(await outcome(group.allReduce(data, { timeoutMs: Number(process.env.WAIT) })));
      process.exit(0);
    `;
    const env = { LOCAL_WORLD_SIZE: '1', GRADLINK_RANKS_PER_NODE: '1' };
    const killed = scripts.env({ ...env, SIGNAL: 'SIGKILL', WAIT: '60000' });
    const lost = await ends(await startOverTcp(scripts, 2, source, killed));
    expect(lost[0]!.reports).toEqual([
      expect.objectContaining({
        code: 'ERR_PEER_LOST',
        rank: 1,
        message: expect.stringMatching(/process 1.*ranks 1.*2/) as string,
      }),
    ]);
    const stopped = scripts.env({ ...env, SIGNAL: 'SIGSTOP', WAIT: '1000' });
    const late = await startOverTcp(scripts, 2, source, stopped);
    expect((await late[0]!.ended).reports).toEqual([
      expect.objectContaining({
        code: 'ERR_TIMEOUT',
        rank: 1,
        message: expect.stringMatching(/process 1.*ranks 1.*2/) as string,
      }),
    ]);
    late[1]!.child.kill('SIGKILL');
    await late[1]!.ended;
  });

  it('crosses hosts, and names the ranks of a host that is cut off', async (context) => {
    if (gpus < 2) context.skip('needs two GPUs');
    await onHosts(context, 'gg', async (name, address) => {
      const source = `
        const group = await Communicator.world({ backend: 'nccl', gpus: [0, 1] });
        const data = group.gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 1000));
        await Promise.all(data.map((one, i) => one.fill(group.ranks[i] + 1)));
        await group.allReduce(data);
        report([group.ranks, (await data[1].copyTo())[0]]);
        say('met');
        let ended = 'done';
        while (ended === 'done') ended = await outcome(group.allReduce(data, { timeoutMs: 2000 }));
        report(ended);
        process.exit(0);
      `;
      const processes = await startOnHosts(scripts, name, address, source);
      await Promise.all(processes.map((one) => one.said('met')));
      cutLink(name);
      const ended = await ends(processes);
      ended.forEach(({ reports }, p) => {
        expect(reports).toEqual([
          [p === 0 ? [0, 1] : [2, 3], 10],
          expect.objectContaining({
            code: 'ERR_TIMEOUT',
            rank: p === 0 ? 2 : 0,
            message: expect.stringContaining(
              p === 0 ? 'process 1 (ranks 2, 3)' : 'process 0 (ranks 0, 1)',
            ) as string,
          }),
        ]);
      });
    });
  });
});
