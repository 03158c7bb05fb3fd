// The whole state of an optimizer that each rank keeps a part of: saved and loaded, by as many ranks or others; and what
// such steps refuse.
import * as tf from '@tensorflow/tfjs-core';
import type { Scalar } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { beforeAll, describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import {
  broadcastOptimizerState,
  DistributedDataParallel,
  DistributedOptimizer,
  loadCheckpoint,
  saveCheckpoint,
} from '../../lib/train/index.js';
import type { DataParallelOptions, InnerOptimizer, NamedArray } from '../../lib/train/index.js';
import { folderOfEachTest } from '../support/folders.js';
import { asRanks, Network, optimizers, samples, useTestBackend } from './support.js';

beforeAll(async () => {
  await useTestBackend();
});

let folder: string;
folderOfEachTest((made) => (folder = made));

const make = (name: string) => optimizers[name]!() as tf.Optimizer & InnerOptimizer;

/** Batches that are the same on every rank: then 1, 2 and 4 ranks have the same gradients to the bit. */
const batch = (step: number) => samples(4 * step, 4 * step + 4);

interface Training {
  readonly comm: Communicator;
  readonly network: Network;
  readonly ddp: DistributedDataParallel;
  readonly optimizer: tf.Optimizer & InnerOptimizer;
}

async function begin(comm: Communicator, name: string, options: DataParallelOptions) {
  const network = new Network();
  const ddp = await DistributedDataParallel.create(network.variables, comm, options);
  return { comm, network, ddp, optimizer: make(name) };
}

async function steps({ network, ddp, optimizer }: Training, from: number, to: number) {
  for (let step = from; step < to; ++step) {
    (await ddp.step(optimizer, () => network.loss(batch(step)))).dispose();
  }
}

const labels = {};
const place = { step: 5, samplesSeen: 20, labels };

async function save({ comm, network, ddp, optimizer }: Training): Promise<void> {
  const weights = network.variables.map((variable, at) => ({
    name: `model/${at}`,
    shape: variable.shape,
    data: Float32Array.from(variable.dataSync()),
  }));
  await saveCheckpoint(folder, comm, place, [...weights, ...(await ddp.optimizerState(optimizer))]);
}

async function load({ comm, network, ddp, optimizer }: Training): Promise<void> {
  const { arrays } = (await loadCheckpoint(folder, comm, labels))!;
  network.variables.forEach((variable, at) => {
    const { data, shape } = arrays.find(({ name }) => name === `model/${at}`)!;
    variable.assign(tf.tensor(data, [...shape]));
  });
  ddp.setOptimizerState(optimizer, arrays);
}

describe('a checkpoint', () => {
  const ways = [
    { from: { ranks: 2, shard: true }, to: { ranks: 4, shard: true } },
    { from: { ranks: 4, shard: true }, to: { ranks: 1, shard: false } },
    { from: { ranks: 2, shard: false }, to: { ranks: 2, shard: true } },
  ];
  describe.each(Object.keys(optimizers))('of %s', (name) => {
    it.each(ways)('of $from goes on with $to, to the bit', async ({ from, to }) => {
      const [expected] = await asRanks(1, async (comm) => {
        const training = await begin(comm, name, {});
        await steps(training, 0, 8);
        return { values: training.network.values(), steps: training.optimizer.iterations };
      });
      await asRanks(from.ranks, async (comm) => {
        const training = await begin(comm, name, { shard: from.shard });
        await steps(training, 0, 5);
        await save(training);
      });
      const results = await asRanks(to.ranks, async (comm) => {
        const training = await begin(comm, name, { shard: to.shard });
        // What it has stepped before is gone.
        await steps(training, 0, 1);
        await load(training);
        await steps(training, 5, 8);
        return { values: training.network.values(), steps: training.optimizer.iterations };
      });
      for (const one of results) expect(one).toEqual(expected);
    });
  });

  it('of an optimizer that has not stepped leaves one that has as if it had not', async () => {
    const [state] = await asRanks(2, async (comm) => {
      const { ddp, optimizer } = await begin(comm, 'adam', { shard: true });
      return await ddp.optimizerState(optimizer);
    });
    await asRanks(2, async (comm) => {
      const training = await begin(comm, 'adam', { shard: true });
      await steps(training, 0, 2);
      training.ddp.setOptimizerState(training.optimizer, state!);
      expect(await training.ddp.optimizerState(training.optimizer)).toEqual(state);
    });
  });

  it('leaves no tensor behind', async () => {
    await asRanks(2, async (comm) => {
      const training = await begin(comm, 'adam', { shard: true });
      await steps(training, 0, 1);
      await comm.barrier();
      const before = tf.memory().numTensors;
      await comm.barrier();
      const state = await training.ddp.optimizerState(training.optimizer);
      training.ddp.setOptimizerState(training.optimizer, state);
      await comm.barrier();
      expect(tf.memory().numTensors).toBe(before);
    });
  });
});

describe('is refused by name', () => {
  /** How the call of the last rank ended, after all have stepped. */
  async function ended(
    call: (training: Training) => unknown,
    {
      name = 'adam',
      ranks = 2,
      ...options
    }: DataParallelOptions & { name?: string; ranks?: number } = {},
  ): Promise<unknown> {
    const results = await asRanks(ranks, async (comm) => {
      const training = await begin(comm, name, { shard: true, ...options });
      await steps(training, 0, 1);
      try {
        await call(training);
        return undefined;
      } catch (error) {
        return error;
      }
    });
    return results.at(-1);
  }
  const arrayOf = (name: string, shape: number[], data: NamedArray['data']) => ({
    name,
    shape,
    data,
  });

  it('broadcastOptimizerState() of a part', async () => {
    expect(
      await ended(({ optimizer, comm }) => broadcastOptimizerState(optimizer, comm)),
    ).toMatchObject({ code: 'ERR_UNSUPPORTED', usable: true });
  });

  it('join() without the optimizer that the others wait for', async () => {
    expect(await ended(({ ddp }) => ddp.join(), { uneven: true })).toMatchObject({
      code: 'ERR_INVALID_ARG_VALUE',
    });
  });

  it('a communicator that ranks may leave, other buckets later, and what is neither true nor false', async () => {
    await asRanks(2, async (comm) => {
      comm.setJoinable();
      await expect(begin(comm, 'sgd', { shard: true })).rejects.toMatchObject({
        code: 'ERR_INVALID_ARG_VALUE',
      });
    });
    await asRanks(1, async (comm) => {
      await expect(begin(comm, 'sgd', { shard: true, rebuild: true })).rejects.toMatchObject({
        code: 'ERR_INVALID_ARG_VALUE',
      });
      await expect(begin(comm, 'sgd', { shard: 1 as never })).rejects.toMatchObject({
        code: 'ERR_INVALID_ARG_TYPE',
      });
    });
  });

  it('an optimizer whose state is of other variables, or that averages by itself', async () => {
    const code = 'ERR_INVALID_ARG_VALUE';
    const step = async ({ ddp, network }: Training, optimizer: tf.Optimizer): Promise<unknown> =>
      ddp.step(optimizer, () => network.loss(batch(0)));
    const stepped = async (training: Training): Promise<unknown> => {
      const optimizer = make('adam');
      optimizer.minimize(() => training.network.loss(batch(0)), false, training.network.variables);
      return await step(training, optimizer);
    };
    expect(await ended(stepped)).toMatchObject({ code });
    const wraps = async (training: Training): Promise<unknown> =>
      await step(training, new DistributedOptimizer(tf.train.sgd(1), training.comm));
    expect(await ended(wraps)).toMatchObject({ code });
    const elsewhere = async (training: Training): Promise<unknown> => {
      const other = await begin(training.comm, 'adam', {});
      return await step(other, training.optimizer);
    };
    expect(await ended(elsewhere)).toMatchObject({ code });
    const asked = async ({ comm, optimizer }: Training): Promise<unknown> =>
      (await begin(comm, 'adam', {})).ddp.optimizerState(optimizer);
    expect(await ended(asked)).toMatchObject({ code });
  });

  it('the state of a class that nobody can deal out', async () => {
    class Slow extends tf.SGDOptimizer {
      readonly slow = [tf.variable(tf.scalar(1), false)];
    }
    class Own extends tf.SGDOptimizer {
      override getWeights(): ReturnType<tf.SGDOptimizer['getWeights']> {
        return Promise.resolve([]);
      }
    }
    for (const optimizer of [new Slow(1), new Own(1)] as unknown as InnerOptimizer[]) {
      expect(await ended(({ ddp }) => ddp.optimizerState(optimizer), { ranks: 1 })).toMatchObject({
        code: 'ERR_UNSUPPORTED',
      });
    }
  });

  it('state after other steps, on every rank', async () => {
    const uneven = ({ ddp, comm }: Training): unknown => {
      const optimizer = make('sgd');
      if (comm.rank === 0) optimizer.applyGradients([]);
      return ddp.optimizerState(optimizer);
    };
    expect(await ended(uneven)).toMatchObject({ code: 'ERR_MISMATCH', usable: true });
  });

  it('arrays of another class, of other variables, and none: nothing is changed', async () => {
    const wrong: ((whole: NamedArray[]) => NamedArray[])[] = [
      () => [],
      (whole) => whole.slice(0, -1),
      (whole) => whole.filter(({ name }) => !name.includes('accBeta1')),
      (whole) => [...whole, arrayOf('optimizer/accumulations/0/momentum', [1], Float32Array.of(1))],
      (whole) => [...whole, arrayOf('optimizer/applyGradients/0/m', [1], Float32Array.of(1))],
      (whole) => [...whole, arrayOf('optimizer/__proto__/0/m', [1], Float32Array.of(1))],
      (whole) =>
        whole.map((one) => (one.name.endsWith('/1/v') ? arrayOf(one.name, [1, 5], one.data) : one)),
    ];
    for (const alter of wrong) {
      const error = await ended(async ({ ddp, optimizer }) => {
        const before = await ddp.optimizerState(optimizer);
        try {
          ddp.setOptimizerState(optimizer, alter(before));
        } finally {
          expect(await ddp.optimizerState(optimizer)).toEqual(before);
        }
      });
      expect(error).toMatchObject({ code: 'ERR_MISMATCH', usable: true });
    }
  });

  it('a step that fails on one rank is told to those that wait for its values', async () => {
    const told = await asRanks(2, async (comm) => {
      const { ddp, network } = await begin(comm, 'sgd', { shard: true });
      const fails = {
        applyGradients: (): void => {
          throw new Error('no step');
        },
      };
      const optimizer = comm.rank === 1 ? fails : make('sgd');
      const loss = (): Scalar => network.loss(batch(0));
      return await ddp.step(optimizer, loss).then(String, (error: unknown) => error);
    });
    expect(told[0]).toMatchObject({ code: 'ERR_ABORTED' });
    expect((told[0] as Error).message).toContain('no step');
  });
});
