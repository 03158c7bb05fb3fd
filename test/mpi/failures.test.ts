// How an MPI job ends when one of its processes does not play along: never by hanging.
import { afterEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';

const scripts = new Scripts();
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
});
