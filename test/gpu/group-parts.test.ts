// Parts and nodes of worlds of processes that hold several GPUs each.
import { afterEach, describe, expect, it } from 'vitest';

import { GpuScripts } from '../support/gpu-processes.js';
import { needs, reportsOf, world } from '../support/world-groups.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

describe('split of a world of processes with several GPUs', () => {
  it('makes parts that cross processes, over TCP', async (context) => {
    needs(4, context);
    // Even and odd ranks, the highest first; what a GPU gives is the rank it had, and one more.
    const source = `${world([2, 2])}
      const parts = await group.split(ranks.map((rank) => rank % 2), ranks.map((rank) => -rank));
      for (const part of new Set(parts)) {
        const buffers = await buffersOf(part, (i) => firstGpu + group.gpus.indexOf(part.gpus[i]) + 1);
        await part.allReduce(buffers);
        report([part.ranks, part.size, part.gpus.map((gpu) => gpu - firstGpu), await lasts(buffers)]);
      }
      for (const part of new Set(parts)) await part.close();
      await group.close();
    `;
    // Of four ranks: 2 and 0, then 3 and 1.
    const both = (rank: number) => [
      [[rank], 2, [0], [4]],
      [[rank], 2, [1], [6]],
    ];
    expect(await reportsOf(scripts, [2, 2], source)).toEqual([both(1), both(0)]);
  });

  it('keeps ranks of one process together, leaves out who wants, and takes processes of one rank', async (context) => {
    needs(4, context);
    // Ranks 0 and 2 to 3 in a part, of which 2 and 3 share a process; rank 1 is a Communicator and takes no part.
    const source = `${world([1, 0, 2])}
      const part = process_ === 1
        ? await group.split(null)
        : (await group.split(ranks.map(() => 7)))[0];
      if (part === null) report('none');
      else {
        const buffers = await buffersOf(part, (i) => ranks[i] + 1);
        await part.allReduce(buffers);
        report([part.ranks, part.size, await lasts(buffers)]);
        // A part of a part.
        const [half] = await part.split(part.ranks.map((rank) => (rank > 0 ? 0 : null)));
        if (half !== null) {
          await half.allReduce(buffers);
          report([half.ranks, half.size, await lasts(buffers)]);
          await half.close();
        }
        const short = await buffersOf(part, () => 1, process_ + 1);
        const { code, message } = await outcome(part.allReduce(short));
        report([code, message]);
        await part.close();
      }
      await group.barrier();
      await group.close();
    `;
    const mismatch = [
      'ERR_MISMATCH',
      expect.stringMatching(
        /rank 0 called allReduce\(count 1.*ranks 1, 2 called allReduce\(count 3/,
      ),
    ];
    expect(await reportsOf(scripts, [1, 0, 2], source)).toEqual([
      [[[0], 3, [8]], mismatch],
      ['none'],
      [[[1, 2], 3, [8, 8]], [[0, 1], 2, [16, 16]], mismatch],
    ]);
  });

  it('takes a list of ranks, as a process of one rank does', async (context) => {
    needs(4, context);
    const source = `${world([2, 0, 1])}
      const part = await group.subset([3, 2, 1]);
      const buffers = part && await buffersOf(part, (i) => 3 - (part.ranks?.[i] ?? part.rank));
      await part?.allReduce(Array.isArray(part.ranks) ? buffers : buffers[0]);
      report(part && [part.ranks ?? part.rank, part.size, await lasts(buffers)]);
      await part?.close();
      // The last has another list than the first.
      const given = process_ === 2 ? [3, 2] : [3, 1];
      report(await group.subset(given).then((none) => none, ({ code }) => code));
      report(await group.subset([1, 0]).then((both) => both?.ranks ?? null));
      await group.close();
    `;
    expect(await reportsOf(scripts, [2, 0, 1], source)).toEqual([
      [[[2], 3, [6]], 'ERR_MISMATCH', [0, 1]],
      [[1, 3, [6]], null, null],
      [[[0], 3, [6]], 'ERR_MISMATCH', null],
    ]);
  });
});

describe('nodes in a world of processes with several GPUs', () => {
  it('refuse sizes that differ, and tell every process of a failure', async (context) => {
    needs(4, context);
    const source = `${world([2, 2])}
      const differs = await outcome(group.setMachineTopology(undefined, { ranksPerNode: process_ === 0 ? 1 : 2 }));
      report([differs.code, differs.message]);
      await group.setMachineTopology(undefined, { ranksPerNode: 2 });
      const data = await buffersOf(group, (i) => ranks[i] + 1);
      // Leaders do not bring as much: a node alone sees nothing of it.
      const wrong = await buffersOf(group, () => 1, process_ + 1);
      report((await outcome(group.hierarchicalNeighborAllReduce(wrong))).code);
      await group.setMachineTopology(undefined, { ranksPerNode: 2 });
      report(await lasts(await group.hierarchicalNeighborAllReduce(data)));
      // Worse than a mismatch: the other leader never comes, and nobody can go on.
      const late = { timeoutMs: 100 };
      report(process_ === 1 || (await outcome(group.hierarchicalNeighborAllReduce(data, late))).code);
      report((await outcome(group.barrier())).code);
      await group.close();
    `;
    for (const [at, reports] of (await reportsOf(scripts, [2, 2], source)).entries()) {
      expect(reports).toEqual([
        ['ERR_MISMATCH', expect.stringContaining('ranksPerNode')],
        'ERR_MISMATCH',
        [2.5, 2.5],
        at === 1 || 'ERR_TIMEOUT',
        'ERR_ABORTED',
      ]);
    }
  });
});
