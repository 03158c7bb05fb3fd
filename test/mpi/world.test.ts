// Worlds under a real mpirun: what the ranks compute together, on one host and on hosts that
// GRADLINK_RANKS_PER_NODE makes of it.
import { afterEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';
import { everything, rightWorld, wholeWorld } from '../support/world.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

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
    const ended = await startJob(scripts, program, size, everything('mpi'), env).ended;
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(wholeWorld(ended.reports)).toEqual(rightWorld(size, 'mpi'));
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
});
