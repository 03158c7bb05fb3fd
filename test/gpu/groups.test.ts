// Worlds of processes that hold several GPUs each.
import { afterEach, describe, expect, it } from 'vitest';

import { GpuScripts } from '../support/gpu-processes.js';
import { cutLink, onHosts } from '../support/hosts.js';
import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { well } from '../support/processes.js';
import { ends, needs, reportsOf, sizeOf, startOnHosts, world } from '../support/world-groups.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/**
 * A call of each shape: of all ranks, with parts for each, of the root alone, of lists, and one that does not fit. That
 * every call gives what a plain loop does is tested natively (native/test/nccl/groups_test.cc).
 */
const everything = (counts: readonly number[]): string => `${world(counts)}
  const root = size - 1;
  const data = (length = 100) => buffersOf(group, (i) => ranks[i] + 1, length);
  // Only who holds the root brings or has its array.
  const ofRoot = async (buffer) => (ranks.includes(root) ? last(buffer) : buffer ?? 'none');
  const lengths = Array.from({ length: size }, (_, rank) => rank + 1);
  const parts = (await data(size)).map((one, i) => one.slice(0, ranks[i] + 1));
  const scattered = ranks.includes(root) ? (await data(100 * size))[ranks.indexOf(root)] : undefined;
  const right = [
    await lasts(await group.allReduce(await data(), { scale: lengths.filter((_, rank) => ranks.includes(rank)), postscale: 3 })),
    await lasts(await group.reduceScatter(await data(100 * size))),
    await lasts(await group.allToAll(await data(100 * size))),
    await lasts(await group.scan(await data())),
    await lasts(await group.scatter(scattered, { root, out: await data() })),
    await lasts((await group.allGatherV(parts, { counts: lengths })).map((one) => one.data)),
    [
      await ofRoot(await group.reduce(await data(), { root })),
      await ofRoot(await group.gather(await data(), { root })),
      await ofRoot((await group.gatherV(parts, { root, counts: lengths }))?.data),
    ],
  ];
  group.allReduceSync(await data());
  await group.barrier();
  const { code, message } = await outcome(group.allReduce(await data(ranks.includes(0) ? 3 : 4)));
  report([ranks, size, group.backend, group.memory, right, code, message]);
  await group.close();
`;

/** Of each process, in any order. */
function expectAll(reports: readonly unknown[], counts: readonly number[]): void {
  const size = counts.reduce((sum, one) => sum + one, 0);
  const sum = (size * (size + 1)) / 2;
  let next = 0;
  const wanted = counts.map((count) => {
    const ranks = Array.from({ length: count }, () => next++);
    const each = (value: (rank: number) => number): number[] => ranks.map(value);
    const right = [
      each(() => sum * (2 * size + 1)),
      each(() => sum),
      each(() => size),
      each((rank) => ((rank + 1) * (rank + 2)) / 2),
      each(() => size),
      each(() => size),
      ranks.includes(size - 1) ? [sum, size, size] : ['none', 'none', 'none'],
    ];
    const first = Array.from({ length: counts[0]! }, (_, rank) => rank).join(', ');
    const named = `${counts[0] === 1 ? 'rank' : 'ranks'} ${first} called allReduce(count 3`;
    const ended =
      counts.length === 1 ? [null, null] : ['ERR_MISMATCH', expect.stringContaining(named)];
    return [ranks, size, 'nccl', 'gpu', right, ...ended];
  });
  const sorted = [...(reports as [number[]][])].sort((one, other) => one[0][0]! - other[0][0]!);
  expect(sorted).toEqual(wanted);
}

describe('a world of processes with several GPUs', () => {
  it.for([{ counts: [3] }, { counts: [1, 2] }, { counts: [2, 2] }, { counts: [2, 1, 1] }])(
    'over TCP computes, $counts GPUs in its processes',
    async ({ counts }, context) => {
      needs(sizeOf(counts), context);
      const reports = await reportsOf(scripts, counts, everything(counts));
      expectAll(reports.flat(), counts);
    },
  );

  it.for(flavours)('over MPI computes, under mpirun of %s', async (flavour, context) => {
    needs(3, context);
    const mpirun = mpirunOf(flavour, context);
    const env = scripts.env({ GRADLINK_TRANSPORT: 'mpi', GRADLINK_RANKS_PER_NODE: '1' });
    const ended = await startJob(scripts, mpirun, 2, everything([1, 2]), env).ended;
    expect(ended).toMatchObject(well);
    expectAll(ended.reports, [1, 2]);
    scripts.expectNothingLeft();
  });

  it('meets in the memory of one host, and with processes that hold one rank', async (context) => {
    needs(3, context);
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

  it('crosses hosts, and names the ranks of a host that is cut off', async (context) => {
    needs(2, context);
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
