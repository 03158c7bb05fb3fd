// The stores of several workers over MPI: gradlink launch starts workers and servers with a real mpirun.
import { spawnSync } from 'node:child_process';

import { afterAll, describe, expect, it } from 'vitest';

import { Launches } from '../support/launching.js';
import { reportsIn, Scripts } from '../support/processes.js';
import { exchanges } from './support.js';

const scripts = new Scripts();
const launches = new Launches();
afterAll(async () => {
  await scripts.remove();
  await launches.remove();
});

/** Its exit status and what it printed. */
async function launch(mpi: string, args: readonly string[], source: string) {
  const { code, stdout, stderr } = await launches.run(
    ['--launcher', 'mpi', ...args, process.execPath, scripts.write(source)],
    { env: { GRADLINK_MPI: mpi } },
  );
  return { code, output: stdout + stderr, reports: reportsIn(stdout) };
}

describe.each(['openmpi', 'mpich'])('%s', (mpi) => {
  const program = `mpirun.${mpi}`;
  const reason =
    spawnSync(program, ['--version']).error === undefined ? undefined : `no ${program} here`;
  const mpiTest = (name: string, test: () => Promise<void>, tags: string[] = []): void => {
    it(name, { tags }, async ({ skip }) => {
      if (reason !== undefined) skip(reason);
      await test();
    });
  };

  mpiTest(
    'workers and servers exchange, and the job ends when the workers do',
    async () => {
      const source = `${exchanges} await kv.close();`;
      for (const ranksPerNode of ['1', '2', '4']) {
        const env = ['--env', `GRADLINK_RANKS_PER_NODE=${ranksPerNode}`];
        const { code, output, reports } = await launch(mpi, ['-n', '2', '-s', '2', ...env], source);
        expect(code, output).toBe(0);
        expect(reports, output).toEqual(Array.from({ length: 12 }, () => true));
      }
    },
    ['smoke'],
  );

  mpiTest('workers without a store do not leave the servers behind', async () => {
    const source = `
      const world = await Communicator.world();
      report([world.size, ...(await world.allReduce(Int32Array.of(world.rank + 1)))]);
      await world.close();
    `;
    const { code, output, reports } = await launch(mpi, ['-n', '2', '-s', '1'], source);
    expect(code, output).toBe(0);
    expect(reports).toEqual([
      [2, 3],
      [2, 3],
    ]);
  });
});
