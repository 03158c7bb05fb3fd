// The stores of several workers over MPI: gradlink launch starts workers and servers with a real mpirun.
import { spawn, spawnSync } from 'node:child_process';

import { afterAll, describe, expect, it } from 'vitest';

import { Scripts } from '../support/processes.js';
import { exchanges, helpers } from './support.js';

const scripts = new Scripts();
afterAll(() => scripts.remove());

const library = new URL('../../dist/index.js', import.meta.url).href;
const gradlink = new URL('../../bench/gradlink.js', import.meta.url).pathname;

/** Its exit status and what it printed. */
async function launch(
  mpi: string,
  args: readonly string[],
  source: string,
): Promise<{ code: number | null; output: string; reports: unknown[] }> {
  const command = ['launch', '--launcher', 'mpi', ...args, process.execPath];
  const child = spawn(process.execPath, [gradlink, ...command, scripts.write(source)], {
    env: { ...process.env, GRADLINK_MPI: mpi },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const reports = output
    .split('\n')
    .filter((line) => line.startsWith('report '))
    .map((line) => JSON.parse(line.slice('report '.length)) as unknown);
  return { code, output, reports };
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

  mpiTest('allreduce steps parts of keys on the workers, to the bit as all of them', async () => {
    const source = `
      ${helpers}
      const { SGD } = await import(${JSON.stringify(library)});
      // Sums that depend on their order.
      const numbers = (seed, length) =>
        Float32Array.from({ length }, (_, i) => Math.sin(seed * 1000 + i));
      const results = [];
      for (const shardOptimizer of [false, true]) {
        const kv = await KVStore.create('allreduce', { shardOptimizer });
        const keys = ['small', 'large'];
        const lengths = [70, 50_001];
        await kv.init(keys, lengths.map((length) => numbers(1, length)));
        await kv.setOptimizer(new SGD({ learningRate: 0.1, momentum: 0.9 }));
        const outs = lengths.map((length) => filled(length, 0));
        for (let round = 0; round < 3; round++) {
          const gradients = lengths.map((length) => numbers(10 * round + kv.rank, length));
          await kv.pushPull(keys, gradients, outs);
        }
        results.push(Buffer.concat(outs.map(({ buffer }) => Buffer.from(buffer))));
        await kv.close();
      }
      report(results[0].equals(results[1]));
    `;
    for (const ranksPerNode of ['1', '2', '3']) {
      const env = ['--env', `GRADLINK_RANKS_PER_NODE=${ranksPerNode}`];
      const { code, output, reports } = await launch(mpi, ['-n', '3', ...env], source);
      expect(code, output).toBe(0);
      expect(reports, `${ranksPerNode} a host`).toEqual([true, true, true]);
    }
  });
});
