// Worlds under a real mpirun: what the ranks compute together, on one host and on hosts that
// GRADLINK_RANKS_PER_NODE makes of it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';

let scripts: Scripts;
beforeEach(() => {
  scripts = new Scripts();
});
afterEach(() => scripts.remove());

interface Report {
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  readonly wrong: readonly string[];
}

/** Every collective, small and in many pieces, on numbers whose sums are exact; then messages and parts. */
const everything = `
  const comm = await Communicator.world({ backend: 'mpi' });
  const { rank, size } = comm;
  const wrong = [];
  const expect = (what, array, valueAt) => {
    const at = array.findIndex((value, i) => Number(value) !== valueAt(i));
    if (at >= 0) wrong.push(what + '[' + at + '] is ' + array[at] + ', not ' + valueAt(at));
  };
  const mine = (i, of = rank) => (i % 5) + of;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const sumOf = (i) => ranks.reduce((sum, r) => sum + mine(i, r), 0);
  for (const count of [1, 24, 1000, 400_001]) {
    const data = Float64Array.from({ length: count }, (_, i) => mine(i));
    const root = count % size;
    expect('allReduce', await comm.allReduce(data.slice()), sumOf);
    expect('avg', await comm.allReduce(data.slice(), { op: 'avg' }), (i) => sumOf(i) / size);
    expect('max', comm.allReduceSync(BigInt64Array.from(data, BigInt), { op: 'max' }), (i) => mine(i, size - 1));
    const reduced = await comm.reduce(data.slice(), { root });
    if (rank === root) expect('reduce', reduced, sumOf);
    expect('broadcast', await comm.broadcast(data.slice(), { root }), (i) => mine(i, root));
    expect('allGather', await comm.allGather(data), (i) => mine(i % count, Math.floor(i / count)));
    const blocks = Float64Array.from({ length: size * count }, (_, i) => mine(i));
    expect('reduceScatter', await comm.reduceScatter(blocks), (i) => sumOf(rank * count + i));
    expect('allToAll', await comm.allToAll(blocks), (i) => mine(rank * count + (i % count), Math.floor(i / count)));
    const gathered = await comm.gather(data, { root });
    if (rank === root) expect('gather', gathered, (i) => mine(i % count, Math.floor(i / count)));
    const scattered = new Float64Array(count);
    await comm.scatter(rank === root ? blocks : null, { root, out: scattered });
    expect('scatter', scattered, (i) => mine(rank * count + i, root));
  }
  const next = (rank + 1) % size;
  const sending = comm.send(Int32Array.of(rank), { to: next, tag: 3 });
  const got = new Int32Array(1);
  const { source } = await comm.receive(got, { tag: 3 });
  await sending;
  expect('receive', [got[0], source], () => (rank + size - 1) % size);
  const part = await comm.split(rank % 2, -rank);
  expect('split', await part.allReduce(Float32Array.of(rank)), () =>
    ranks.filter((r) => r % 2 === rank % 2).reduce((sum, r) => sum + r, 0));
  await part.close();
  const shared = comm.allocShared('float32', 300_001).fill(rank);
  expect('shared', await comm.allReduce(shared), () => (size * (size - 1)) / 2);
  await comm.barrier();
  report({ rank, size, backend: comm.backend, wrong });
  await comm.close();
`;

describe.each(flavours)('under mpirun of %s', (flavour) => {
  const cases = [
    { size: 2, perNode: undefined },
    { size: 2, perNode: 1 },
    { size: 3, perNode: 2 },
    { size: 4, perNode: 2 },
    { size: 7, perNode: undefined },
    { size: 7, perNode: 2 },
  ];
  it.for(cases)('$size ranks, $perNode a host', async ({ size, perNode }, context) => {
    const program = mpirunOf(flavour, context);
    const env = perNode === undefined ? {} : { GRADLINK_RANKS_PER_NODE: String(perNode) };
    const ended = await startJob(scripts, program, size, everything, env).ended;
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const reports = ended.reports as readonly Report[];
    const sorted = [...reports].sort((a, b) => a.rank - b.rank);
    expect(sorted).toEqual(
      Array.from({ length: size }, (_, rank) => ({ rank, size, backend: 'mpi', wrong: [] })),
    );
  });

  it('the embedded engine joins one host when nothing else is said', async (context) => {
    const program = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      program,
      2,
      `const comm = await Communicator.world();
       report([comm.backend, (await comm.allReduce(Int32Array.of(1)))[0]]);
       await comm.close();`,
    ).ended;
    expect(ended).toMatchObject({
      code: 0,
      stderr: '',
      reports: [
        ['shm', 2],
        ['shm', 2],
      ],
    });
  });

  it('GRADLINK_TRANSPORT asks for MPI', { tags: 'smoke' }, async (context) => {
    const program = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      program,
      2,
      `const comm = await Communicator.world();
       report([comm.backend, comm.size, (await comm.allReduce(Int32Array.of(1)))[0]]);
       await comm.close();`,
      { GRADLINK_TRANSPORT: 'mpi', GRADLINK_NUM_WORKERS: '2' },
    ).ended;
    const report = ['mpi', 2, 2];
    expect(ended).toMatchObject({ code: 0, stderr: '', reports: [report, report] });
  });
});
