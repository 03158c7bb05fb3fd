// A rank that runs out of data before the others: the same job with Horovod's join in it as processes of this host, over TCP
// and under mpirun, blocking calls too.
import { afterEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { Scripts, well } from '../support/processes.js';
import { startOverTcp } from '../support/tcp.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

/** Rank r has r + 1 batches of its own number. */
const uneven = (options: string) => `
  const comm = await Communicator.world(${options});
  const { rank, size } = comm;
  comm.setJoinable();
  const wrong = [];
  for (let step = 0; step <= rank; ++step) {
    const want = Array.from({ length: size }, (_, r) => (r >= step ? r + 1 : 0)).reduce((a, b) => a + b);
    for (const count of [1, 3000, 400_000]) {
      const sum = await comm.allReduce(new Float64Array(count).fill(rank + 1));
      if (sum.some((value) => value !== want)) wrong.push(\`\${step}: \${sum[0]}, not \${want}\`);
    }
    const mean = comm.allReduceSync(Float64Array.of(rank + 1), { op: 'avg' });
    if (mean[0] !== want / size) wrong.push(\`\${step}: mean \${mean[0]}\`);
    const { counts } = await comm.allGatherV(new Int32Array(2));
    if (counts.some((count, r) => count !== (r >= step ? 2 : 0))) wrong.push(\`\${step}: \${counts}\`);
    const told = await comm.allGather(Int32Array.of(rank)).then(() => 'done', ({ code, usable }) => code + usable);
    if (told !== (step === 0 ? 'done' : 'ERR_UNSUPPORTEDtrue')) wrong.push(\`\${step}: \${told}\`);
  }
  const last = await comm.join();
  const all = await comm.allGather(Int32Array.of(rank));
  report({ rank, last, all: [...all], wrong });
  await comm.close();
`;
const reportOf = (rank: number, size: number) => ({
  rank,
  last: size - 1,
  all: Array.from({ length: size }, (_, r) => r),
  wrong: [],
});

const byRank = (reports: readonly unknown[]) =>
  [...(reports as { rank: number }[])].sort((a, b) => a.rank - b.rank);

describe('ranks with fewer batches than others join', () => {
  const wanted = (size: number) => Array.from({ length: size }, (_, rank) => reportOf(rank, size));

  it.each([1, 2, 3])('as %i processes', async (size) => {
    const ended = await scripts.runRanks(size, uneven(''));
    ended.forEach((one, rank) => {
      expect(one).toMatchObject({ ...well, reports: [wanted(size)[rank]] });
    });
  });

  it('over TCP', async () => {
    const started = await startOverTcp(scripts, 3, uneven("{ backend: 'tcp' }"));
    const ended = await Promise.all(started.map((one) => one.ended));
    for (const one of ended) expect(one).toMatchObject(well);
    expect(byRank(ended.flatMap(({ reports }) => reports))).toEqual(wanted(3));
  });

  describe.each(flavours)('under mpirun of %s', (flavour) => {
    it.for([undefined, 2])('%s a host', async (perNode, context) => {
      const env = perNode === undefined ? {} : { GRADLINK_RANKS_PER_NODE: String(perNode) };
      const mpirun = mpirunOf(flavour, context);
      const ended = await startJob(scripts, mpirun, 4, uneven("{ backend: 'mpi' }"), env).ended;
      expect(ended).toMatchObject({ code: 0, stderr: '' });
      expect(byRank(ended.reports)).toEqual(wanted(4));
    });
  });
});
