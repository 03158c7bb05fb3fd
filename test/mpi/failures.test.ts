// How an MPI job ends when one of its processes does not play along: never by hanging.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';

let scripts: Scripts;
beforeEach(() => {
  scripts = new Scripts();
});
afterEach(() => scripts.remove());

/** All wait for rank 1, which does this instead. */
const allBut1 = (instead: string) => `
  const comm = await Communicator.world({ backend: 'mpi' });
  await comm.barrier();
  if (comm.rank === 1) { ${instead} }
  await comm.barrier({ timeoutMs: Infinity });
`;

describe.each(flavours)('a job under mpirun of %s', (flavour) => {
  const perNode = ['1', '2', '3'];

  it.for(perNode)('ends with an uncaught error, %s ranks a host', async (ranks, context) => {
    const program = mpirunOf(flavour, context);
    const ended = await startJob(scripts, program, 3, allBut1(`throw new Error('apples');`), {
      GRADLINK_RANKS_PER_NODE: ranks,
    }).ended;
    expect(ended.code).not.toBe(0);
    expect(ended.stderr).toContain('apples');
  });

  it('ends with the status of a process that exits', async (context) => {
    const program = mpirunOf(flavour, context);
    const ended = await startJob(scripts, program, 3, allBut1(`process.exit(5);`)).ended;
    expect(ended.code).toBe(5);
    expect(ended.stderr).toMatch(/exits .*5/);
  });

  it('ends when a process is killed', { tags: 'smoke' }, async (context) => {
    const program = mpirunOf(flavour, context);
    const source = allBut1(`process.kill(process.pid, 'SIGKILL');`);
    const ended = await startJob(scripts, program, 3, source, { GRADLINK_RANKS_PER_NODE: '2' })
      .ended;
    expect(ended.code).not.toBe(0);
  });

  it('leaves an error to the program that handles it', async (context) => {
    const program = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      program,
      2,
      `process.on('uncaughtException', ({ message }) => report(message));
       const comm = await Communicator.world({ backend: 'mpi' });
       setImmediate(() => { if (comm.rank === 1) throw new Error('handled'); });
       await new Promise(setImmediate);
       await comm.barrier();
       await comm.close();`,
    ).ended;
    expect(ended).toMatchObject({ code: 0, stderr: '', reports: ['handled'] });
  });

  it.for(perNode)(
    'tells a mismatch to all and goes on, %s ranks a host',
    async (ranks, context) => {
      const program = mpirunOf(flavour, context);
      const ended = await startJob(
        scripts,
        program,
        3,
        `const comm = await Communicator.world({ backend: 'mpi' });
       const data = new Float32Array(comm.rank === 2 ? 41 : 40).fill(1);
       const { code, rank } = await outcome(comm.allReduce(data));
       report([code, rank, (await comm.allReduce(Int32Array.of(1)))[0]]);
       await comm.close();`,
        { GRADLINK_RANKS_PER_NODE: ranks },
      ).ended;
      expect(ended).toMatchObject({ code: 0, stderr: '' });
      expect(ended.reports).toEqual(Array.from({ length: 3 }, () => ['ERR_MISMATCH', 2, 3]));
    },
  );

  it.for(perNode)('names the late rank to all, %s ranks a host', async (ranks, context) => {
    const program = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      program,
      4,
      `const comm = await Communicator.world({ backend: 'mpi', timeoutMs: 20_000 });
       await comm.barrier();
       if (comm.rank === 3) {
         // Comes when the others have given up, of which a message tells.
         await comm.receive(new Int32Array(1), { timeoutMs: Infinity }).catch(() => undefined);
       } else {
         // Longer than these are apart on a busy machine: else one of them is the late one.
         const { code, rank } = await outcome(comm.barrier({ timeoutMs: 2000 }));
         report([code, rank]);
       }
       await comm.close();`,
      { GRADLINK_RANKS_PER_NODE: ranks },
    ).ended;
    expect(ended.reports).toEqual(Array.from({ length: 3 }, () => ['ERR_TIMEOUT', 3]));
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });

  it.for(perNode)('aborts everywhere, %s ranks a host', async (ranks, context) => {
    const program = mpirunOf(flavour, context);
    const ended = await startJob(
      scripts,
      program,
      4,
      `const comm = await Communicator.world({ backend: 'mpi', timeoutMs: 60_000 });
       if (comm.rank === 3) {
         // All are in their barrier: an abort before that may reach them while they still join.
         await comm.barrier();
         comm.abort('enough');
       }
       let last;
       while (last === undefined) {
         last = await comm.barrier().then(() => undefined, plain);
       }
       report([last.code, last.rank, last.message.includes('enough')]);
       await comm.close();`,
      { GRADLINK_RANKS_PER_NODE: ranks },
    ).ended;
    expect(ended.reports).toEqual(Array.from({ length: 4 }, () => ['ERR_ABORTED', 3, true]));
    expect(ended).toMatchObject({ code: 0, stderr: '' });
  });
});
