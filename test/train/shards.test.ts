// Steps that are shared by the ranks: the same bits as without, and each rank keeps the state of its part alone.
import * as tf from '@tensorflow/tfjs-core';
import type { Scalar, Variable } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { beforeAll, describe, expect, it } from 'vitest';

import type { GradlinkError } from '../../lib/errors.js';
import { DistributedDataParallel } from '../../lib/train/index.js';
import type { DataParallelOptions } from '../../lib/train/index.js';
import { asRanks, Network, optimizers, samples, sines, useTestBackend } from './support.js';

beforeAll(async () => {
  await useTestBackend();
});

interface Run extends DataParallelOptions {
  readonly ranks: number;
  readonly make: () => tf.Optimizer;
  /** Of rank `rank`; 6 when absent. */
  readonly steps?: (rank: number) => number;
  readonly around?: (
    ddp: DistributedDataParallel,
    optimizer: tf.Optimizer,
    step: number,
  ) => Promise<unknown>;
  /** A variable larger than all others together. */
  readonly large?: boolean;
}

/** Values after some steps, on every rank, with the state that they end with. */
async function trained({ ranks, make, steps, around, large, ...options }: Run) {
  return await asRanks(ranks, async (comm) => {
    const network = new Network();
    const big = tf.variable(tf.tensor2d(sines(300, 0.7), [100, 3]));
    const variables = large === true ? [...network.variables, big] : network.variables;
    const ddp = await DistributedDataParallel.create(variables, comm, options);
    const optimizer = make();
    const count = steps?.(comm.rank) ?? 6;
    for (let step = 0; step < count; ++step) {
      const from = (4 * (step * ranks + comm.rank)) % 60;
      const own = samples(from, from + 4);
      const loss = (): Scalar => {
        const small = network.loss(own);
        return large === true ? tf.add(small, tf.mean(tf.square(big))) : small;
      };
      await around?.(ddp, optimizer, step);
      (await ddp.step(optimizer, loss)).dispose();
    }
    if (options.uneven === true) await ddp.join({ optimizer });
    return {
      values: variables.map((variable) => [...variable.dataSync()]),
      state: await ddp.optimizerState(optimizer),
      iterations: optimizer.iterations,
    };
  });
}

const everyRank = (results: readonly unknown[], expected: unknown): void => {
  for (const one of results) expect(one).toEqual(expected);
};

describe('the same bits as without', () => {
  describe.each([1, 2, 4, 6])('%d ranks', (ranks) => {
    it.each(Object.entries(optimizers))('%s', async (_, make) => {
      const [whole] = await trained({ ranks, make, large: true });
      everyRank(await trained({ ranks, make, large: true, shard: true }), whole);
    });
  });

  const make = optimizers['adam']!;
  const cases: readonly (readonly [string, Omit<Run, 'ranks' | 'make'>])[] = [
    ['a bucket for each variable', { large: true, bucketCapBytes: 4 }],
    ['gradients that travel in 2 bits', { large: true, hook: '2bit', rebuild: false }],
    ['gradients that travel as products', { large: true, hook: 'powersgd', rebuild: false }],
    ['values that cross at once', { large: true, gather: true }],
    ['buckets one after the other', { mode: 'sync' }],
    ['gradients that travel in half', { large: true, hook: 'float16' }],
    ['sums', { op: 'sum' }],
    [
      'gradients of several passes',
      {
        around: (ddp, optimizer, step) =>
          ddp.noSync(() => {
            const own = samples(step, step + 2);
            const [w1] = ddp.variables as [Variable];
            return ddp.step(optimizer, () => tf.mean(tf.square(tf.matMul(own.x, w1))));
          }),
      },
    ],
    [
      'ranks whose data end at different times',
      { uneven: true, steps: (rank) => [2, 5, 3][rank]! },
    ],
    [
      'the same, in many buckets, where unused variables are left alone',
      { bucketCapBytes: 4, uneven: true, findUnused: true, steps: (rank) => [2, 5, 3][rank]! },
    ],
  ];
  it.each(cases)('%s', async (_, options) => {
    const [whole] = await trained({ ranks: 3, make, ...options });
    everyRank(await trained({ ranks: 3, make, shard: true, ...options }), whole);
  });

  it.each(['momentum', 'adam', 'rmsprop'])(
    '%s, with variables that nobody uses in some steps',
    async (name) => {
      const run = async (shard: boolean) =>
        await asRanks(2, async (comm) => {
          const list = [30, 20, 50, 10].map((size, at) =>
            tf.variable(tf.tensor1d(sines(size, at + 1))),
          );
          const options = { shard, findUnused: true };
          const ddp = await DistributedDataParallel.create(list, comm, options);
          const optimizer = optimizers[name]!();
          for (let step = 0; step < 8; ++step) {
            const used = list.filter((_, at) => at !== step % 4);
            const loss = (): Scalar => tf.addN<Scalar>(used.map((one) => tf.sum(tf.square(one))));
            (await ddp.step(optimizer, loss)).dispose();
          }
          return list.map((variable) => [...variable.dataSync()]);
        });
      const [whole] = await run(false);
      everyRank(await run(true), whole);
    },
  );
});

describe('what a rank keeps', () => {
  it('is the state of an n-th, and nothing stays behind from step to step', async () => {
    const kept = await asRanks(4, async (comm) => {
      const list = [300, 5, 64].map((size) => tf.variable(tf.ones([size])));
      const ddp = await DistributedDataParallel.create(list, comm, { shard: true });
      const optimizer = tf.train.adam(0.1);
      const step = async (): Promise<void> => {
        const loss = (): Scalar => tf.addN<Scalar>(list.map((one) => tf.sum(one)));
        (await ddp.step(optimizer, loss)).dispose();
        // All ranks share this process's tensors.
        await comm.barrier();
      };
      await step();
      const before = tf.memory().numTensors;
      await comm.barrier();
      await step();
      expect(tf.memory().numTensors).toBe(before);
      await comm.barrier();
      const weights = await optimizer.getWeights();
      const elements = weights.slice(1).reduce((sum, { tensor }) => sum + tensor.size, 0);
      return elements;
    });
    // Of 369 elements; a part is a multiple of 16.
    expect(kept).toEqual([2 * 96, 2 * 96, 2 * 96, 2 * 81]);
  });

  it('scatters gradients: a rank that asks for all of them makes another call', async () => {
    const codes = await asRanks(2, async (comm) => {
      const network = new Network();
      const ddp = await DistributedDataParallel.create(network.variables, comm, { shard: true });
      const loss = (): Scalar => network.loss(samples(0, 4));
      const call = comm.rank === 0 ? ddp.step(tf.train.sgd(1), loss) : ddp.gradients(loss);
      return await call.then(
        () => undefined,
        (error: unknown) => (error as GradlinkError).code,
      );
    });
    expect(codes).toEqual(['ERR_MISMATCH', 'ERR_MISMATCH']);
  });

  it('leaves gradients() as it is', async () => {
    const [own] = await asRanks(2, async (comm) => {
      const network = new Network();
      const seen = async (shard: boolean): Promise<(number[] | undefined)[]> => {
        const ddp = await DistributedDataParallel.create(network.variables, comm, { shard });
        const { value, gradients } = await ddp.gradients(() => network.loss(samples(0, 4)));
        value.dispose();
        return gradients.map(({ tensor }) => [...tensor.dataSync()]);
      };
      return [await seen(true), await seen(false)];
    });
    expect(own![0]).toEqual(own![1]);
    expect(own![0]).toHaveLength(4);
  });
});
