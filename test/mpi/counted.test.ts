// Collectives with counts under a real mpirun: by value, over one host and several, and where ranks disagree.
import { afterEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

const source = `
  const comm = await Communicator.world({ backend: 'mpi' });
  const { rank, size } = comm;
  const all = Array.from({ length: size }, (_, r) => r);
  const wrong = [];
  const expect = (what, { data, counts }, want, wantCounts) => {
    if (data.length !== want.length) wrong.push(what + ' is ' + data.length + ' long, not ' + want.length);
    const at = want.findIndex((value, i) => data[i] !== value);
    if (at >= 0) wrong.push(what + '[' + at + '] is ' + data[at] + ', not ' + want[at]);
    if (String(counts) !== String(wantCounts)) wrong.push(what + ' counts ' + counts);
  };
  for (const scale of [1, 3001, 60_007]) {
    const countOf = (from, to) => scale * ((from * 2 + to) % 4);
    const block = (from, to) => new Int32Array(countOf(from, to)).map((_, i) => from * 31 + to * 7 + i);
    const join = (parts) => Int32Array.from(parts.flatMap((part) => [...part]));
    const ones = join(all.map((from) => block(from, 1)));
    const oneCounts = all.map((from) => countOf(from, 1));
    const splits = all.map((to) => countOf(rank, to));
    expect('allToAllV ' + scale, await comm.allToAllV(join(all.map((to) => block(rank, to))), { splits }),
      join(all.map((from) => block(from, rank))), all.map((from) => countOf(from, rank)));
    expect('allGatherV ' + scale, comm.allGatherVSync(block(rank, 1)), ones, oneCounts);
    const root = size - 1;
    const gathered = await comm.gatherV(block(rank, 1), { root });
    if (rank === root) expect('gatherV ' + scale, gathered, ones, oneCounts);
    const part = rank === root
      ? await comm.scatterV(ones, { counts: oneCounts, root })
      : await comm.scatterV(null, { dtype: 'int32', root });
    expect('scatterV ' + scale, part, block(rank, 1), oneCounts);
    const length = size * scale + size - 1;
    const sum = await comm.reduceScatterV(new Float64Array(length).map((_, i) => i * (rank + 1)));
    const share = scale + (rank < size - 1 ? 1 : 0);
    const begin = rank * (scale + 1);
    expect('reduceScatterV ' + scale, sum,
      Array.from({ length: size === 1 ? length : share }, (_, i) => (begin + i) * size * (size + 1) / 2),
      all.map((r) => scale + (r < size - 1 ? 1 : 0)));
  }
  if (size > 1) {
    const told = await comm.allGatherV(new Int32Array(2), { out: new Int32Array(rank === 1 ? 3 : 2 * size) })
      .then(() => 'nothing', ({ code, usable, message }) => [code, usable, /rank 1 gets/.test(message)].join());
    if (told !== 'ERR_MISMATCH,true,true') wrong.push('room: ' + told);
    const other = await (rank === 1 ? comm.barrier() : comm.allGatherV(new Int32Array(2)))
      .then(() => 'nothing', ({ code }) => code);
    if (other !== 'ERR_MISMATCH') wrong.push('call: ' + other);
  }
  await comm.barrier();
  report({ rank, wrong });
  await comm.close();
`;

const cases = [
  { size: 1, perNode: undefined },
  { size: 2, perNode: undefined },
  { size: 4, perNode: 2 },
  { size: 5, perNode: 1 },
];

describe.each(flavours)('counts under mpirun of %s', (flavour) => {
  it.for(cases)('$size ranks, $perNode a host', async ({ size, perNode }, context) => {
    const env = perNode === undefined ? {} : { GRADLINK_RANKS_PER_NODE: String(perNode) };
    const job = startJob(scripts, mpirunOf(flavour, context), size, source, env);
    const ended = await job.ended;
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const reports = [...(ended.reports as { rank: number }[])].sort((a, b) => a.rank - b.rank);
    expect(reports).toEqual(Array.from({ length: size }, (_, rank) => ({ rank, wrong: [] })));
  });
});
