// Ranks whose data end at different times: those left over count alone, and nobody waits for a rank that has joined.
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { beforeAll, describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import { DistributedDataParallel, GradientReducer, reduceModes } from '../../lib/train/index.js';
import type { DataParallelOptions, ReducerOptions } from '../../lib/train/index.js';
import { asRanks, largestDifference, Network, samples, useTestBackend } from './support.js';

beforeAll(async () => {
  await useTestBackend();
});

const specs = [
  { name: 'kernel', shape: [3, 5] },
  { name: 'bias', shape: [5] },
];

/** Passes of one rank, each gradient full of `value`; what came out of them, then of those of the others. */
async function passes(
  comm: Communicator,
  given: readonly number[],
  options: ReducerOptions,
): Promise<{ seen: number[]; last: number }> {
  const reducer = new GradientReducer(comm, specs, options);
  const seen: number[] = [];
  const look = () => seen.push(reducer.gradient(0)[14]!, reducer.gradient(1)[0]!);
  for (const value of given) {
    reducer.begin({ scale: await reducer.attend() });
    reducer.add(1, new Float32Array(5).fill(2 * value));
    reducer.add(0, new Float32Array(15).fill(value));
    await reducer.finish();
    look();
  }
  const last = await reducer.join({ after: look });
  return { seen, last };
}

describe.each([2, 4])('%d ranks', (size) => {
  describe.each(reduceModes)('%s', (mode) => {
    it.each(['avg', 'sum'] as const)('%s counts those who take part', async (op) => {
      // Rank r makes r + 1 passes, the last rank one as the first: the one before it is the last to join.
      const counts = Array.from({ length: size }, (_, rank) => (rank === size - 1 ? 1 : rank + 1));
      const longest = Math.max(...counts);
      const value = (rank: number, pass: number): number => 10 * (rank + 1) + pass;
      const expected = Array.from({ length: longest }, (_, pass) => {
        const active = [...counts.keys()].filter((rank) => pass < counts[rank]!);
        const sum = active.reduce((total, rank) => total + value(rank, pass), 0);
        return op === 'avg' ? sum / active.length : sum;
      }).flatMap((one) => [one, 2 * one]);
      const results = await asRanks(size, (comm) =>
        passes(
          comm,
          Array.from({ length: counts[comm.rank]! }, (_, pass) => value(comm.rank, pass)),
          { mode, op, bucketCapBytes: 4 },
        ),
      );
      for (const { seen, last } of results) {
        expect(last).toBe(counts.lastIndexOf(longest));
        expect(seen).toHaveLength(expected.length);
        seen.forEach((one, i) => {
          expect(one).toBeCloseTo(expected[i]!, 4);
        });
      }
    });
  });

  it('all at once: the highest rank is the last, and again', async () => {
    const results = await asRanks(size, async (comm) => {
      const reducer = new GradientReducer(comm, specs);
      return [await reducer.join(), await reducer.join()];
    });
    for (const one of results) expect(one).toEqual([size - 1, size - 1]);
  });
});

it('what a rank has only added up counts after it has joined', async () => {
  const results = await asRanks(2, async (comm) => {
    const reducer = new GradientReducer(comm, specs);
    const pass = async (value: number, reduce: boolean): Promise<void> => {
      reducer.begin({ scale: await reducer.attend({ reduce }), reduce });
      for (const index of [0, 1]) reducer.add(index, new Float32Array(index ? 5 : 15).fill(value));
      await reducer.finish();
    };
    await pass(comm.rank === 0 ? 2 : 4, false);
    if (comm.rank === 0) await pass(8, true);
    await reducer.join();
    return [...new Set([...reducer.gradient(0), ...reducer.gradient(1)])];
  });
  // The mean of the first pass, and the second's alone.
  for (const one of results) expect(one).toEqual([3 + 8]);
});

it('batches count by their samples', async () => {
  const results = await asRanks(3, async (comm) => {
    const reducer = new GradientReducer(comm, [{ name: 'one', shape: [1] }]);
    if (comm.rank < 2) {
      reducer.begin({ scale: await reducer.attend({ samples: comm.rank === 0 ? 3 : 1 }) });
      reducer.add(0, Float32Array.of(comm.rank === 0 ? 4 : 8));
      await reducer.finish();
    }
    await reducer.join();
    return reducer.gradient(0)[0];
  });
  for (const one of results) expect(one).toBeCloseTo((3 * 4 + 8) / 4, 5);
});

describe('DistributedDataParallel', () => {
  const batches = [1, 3, 2];

  async function trained(options: DataParallelOptions, withOptimizer: boolean) {
    return await asRanks(3, async (comm) => {
      const network = new Network();
      const ddp = await DistributedDataParallel.create(network.variables, comm, {
        uneven: true,
        ...options,
      });
      const optimizer = tf.train.momentum(0.1, 0.9);
      for (let step = 0; step < batches[comm.rank]!; ++step) {
        const own = samples(12 * step + 4 * comm.rank, 12 * step + 4 * comm.rank + 4);
        (await ddp.step(optimizer, () => network.loss(own))).dispose();
      }
      const last = await ddp.join(withOptimizer ? { optimizer } : {});
      const state = await optimizer.getWeights();
      const momenta = state.slice(1).flatMap(({ tensor }) => [...tensor.dataSync()]);
      return { last, values: network.values(), momenta };
    });
  }

  /** One rank with the batches of those who have one. */
  function alone(): number[] {
    const network = new Network();
    const optimizer = tf.train.momentum(0.1, 0.9);
    for (let step = 0; step < Math.max(...batches); ++step) {
      optimizer.minimize(
        () => {
          const active = [0, 1, 2].filter((rank) => step < batches[rank]!);
          const losses = active.map((rank) =>
            network.loss(samples(12 * step + 4 * rank, 12 * step + 4 * rank + 4)),
          );
          return tf.mean(tf.stack(losses));
        },
        false,
        network.variables,
      );
    }
    return network.values();
  }

  it.each([{ findUnused: false }, { findUnused: true }, { mode: 'sync' as const }])(
    'follows one rank that goes on with what is left: %o',
    async (options) => {
      const expected = alone();
      const results = await trained(options, true);
      for (const { last, values, momenta } of results) {
        expect(last).toBe(1);
        expect(values).toEqual(results[0]!.values);
        expect(momenta).toEqual(results[0]!.momenta);
        expect(momenta).not.toEqual([]);
        expect(largestDifference(values, expected)).toBeLessThan(1e-5);
      }
    },
  );

  it('gives all the values of the last rank where no optimizer is given', async () => {
    const results = await trained({}, false);
    for (const { last, values } of results) {
      expect(last).toBe(1);
      expect(values).toEqual(results[1]!.values);
    }
    expect(results[0]!.momenta).not.toEqual(results[1]!.momenta);
  });
});

describe('what is refused or fails', () => {
  it('join() without the option, and what comes meanwhile', async () => {
    await asRanks(2, async (comm) => {
      const even = await DistributedDataParallel.create(new Network().variables, comm);
      await expect(even.join()).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED', usable: true });
      const reducer = new GradientReducer(comm, specs);
      const joined = reducer.join();
      expect(() => {
        reducer.begin();
      }).toThrow(/after join/);
      await expect(reducer.join()).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' });
      await expect(reducer.attend()).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' });
      await joined;
    });
  });

  it('a rank that leaves ends the join of the others', async () => {
    const told = await asRanks(3, async (comm) => {
      const reducer = new GradientReducer(comm, specs);
      if (comm.rank === 2) {
        await comm.close();
        return 'ERR_PEER_LOST';
      }
      return await reducer.join().then(
        () => 'joined',
        (error: unknown) => (error as { code: string }).code,
      );
    });
    expect(told).toEqual(['ERR_PEER_LOST', 'ERR_PEER_LOST', 'ERR_PEER_LOST']);
  });

  it('a pass that fails ends the join of the others, and so does a joined rank', async () => {
    for (const failing of ['loss', 'loss without a reduction', 'join']) {
      const told = await asRanks(2, async (comm) => {
        const network = new Network();
        const ddp = await DistributedDataParallel.create(network.variables, comm, { uneven: true });
        const fails = tf.customGrad((x) => ({
          value: tf.clone(x as tf.Tensor),
          gradFunc: (): tf.Tensor => {
            throw new Error('no gradient');
          },
        }));
        const loss = (): tf.Scalar => {
          // Before its pass has begun.
          if (failing.includes('without')) throw new Error('no gradient');
          const own = network.loss(samples(0, 4));
          return failing === 'join' ? own : (fails(own) as tf.Scalar);
        };
        const optimizer = {
          applyGradients: (): void => {
            if (failing === 'join' && comm.rank === 1) throw new Error('no step');
          },
        };
        const passesMade = async (): Promise<unknown> => {
          const step = () => ddp.step(optimizer, loss);
          if (comm.rank === 0) await (failing.includes('without') ? ddp.noSync(step) : step());
          return await ddp.join({ optimizer });
        };
        return await passesMade().then(String, String);
      });
      const by = failing === 'join' ? 1 : 0;
      expect(told[by]).toMatch(/no gradient|no step/);
      expect(told[1 - by]).toMatch(new RegExp(`rank ${by} failed`));
    }
  });
});
