// Worlds of GPUs on several hosts: what crosses them is NCCL's, what the ranks agree on goes over TCP or MPI.
import { afterEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { flavours, mpirunOf, startJob } from '../support/mpi.js';
import { well } from '../support/processes.js';
import { startOverTcp } from '../support/tcp.js';
import { ends } from '../support/world-groups.js';
import { everything, rightWorld, wholeWorld } from '../support/world.js';

const gpus = gpuDevices().length;
const size = Math.min(gpus, 3);

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

describe('a world of GPUs', () => {
  it.for([undefined, 1, 2])('over TCP computes, %s ranks a host', async (perNode) => {
    const env = perNode === undefined ? {} : { GRADLINK_RANKS_PER_NODE: String(perNode) };
    // More than one host, for all that the ranks are told.
    const running = await startOverTcp(
      scripts,
      size,
      everything('nccl', gpus),
      scripts.env({ LOCAL_WORLD_SIZE: String(Math.max(1, size - 1)), ...env }),
    );
    const ended = await ends(running);
    for (const one of ended) expect(one).toMatchObject(well);
    expect(wholeWorld(ended.flatMap(({ reports }) => reports))).toEqual(rightWorld(size, 'nccl'));
    scripts.expectNothingLeft();
  });

  it.for(flavours)('over MPI computes, under mpirun of %s', async (flavour, context) => {
    const mpirun = mpirunOf(flavour, context);
    const env = scripts.env({ GRADLINK_TRANSPORT: 'mpi', GRADLINK_RANKS_PER_NODE: '1' });
    const ended = await startJob(scripts, mpirun, size, everything('nccl', gpus), env).ended;
    expect(ended).toMatchObject(well);
    expect(wholeWorld(ended.reports)).toEqual(rightWorld(size, 'nccl'));
    scripts.expectNothingLeft();
  });

  it('agrees as often as it is told', async () => {
    const source = `
      const comm = await Communicator.world({ backend: 'nccl', check: process.env.CHECK });
      const data = DeviceBuffer.alloc(comm.gpus[0], 'float32', 1000);
      await data.fill(1);
      for (let i = 0; i < 3; ++i) await comm.allReduce(data);
      report((await data.copyTo())[999]);
      data.dispose();
      await comm.close();
    `;
    for (const check of ['always', 'first', 'never']) {
      const ranks = scripts.startRanks(size, source, scripts.env({ CHECK: check }));
      for (const one of await ends(ranks)) {
        expect(one).toMatchObject({ ...well, reports: [size ** 3] });
      }
    }
    const wrong = await scripts.run(
      `report(await outcome(Communicator.world({ backend: 'nccl', check: 'maybe' })));
       report(await outcome(Communicator.world({ check: 'first' })));`,
      scripts.env(),
    );
    expect(wrong.reports).toEqual([
      expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
      expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
    ]);
    scripts.expectNothingLeft();
  });
});
