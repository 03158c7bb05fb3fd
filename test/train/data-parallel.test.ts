// Several workers must follow one that sees all their samples.
import * as tf from '@tensorflow/tfjs-core';
import type { Optimizer, Scalar, Tensor } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { beforeAll, describe, expect, test } from 'vitest';

import { DistributedDataParallel, DistributedOptimizer } from '../../lib/train/index.js';
import type { DataParallelOptions } from '../../lib/train/index.js';
import { asRanks, largestDifference, Network, samples, useTestBackend } from './support.js';

const workers = 3;
const batch = 4;
const steps = 10;
const optimizers: Record<string, () => Optimizer> = {
  sgd: () => tf.train.sgd(0.1),
  momentum: () => tf.train.momentum(0.05, 0.9),
  adam: () => tf.train.adam(0.01),
};
const modes = ['overlap', 'async', 'sync'] as const;

beforeAll(async () => {
  await useTestBackend();
});

/** Rows of one rank's batch in one step. */
const rowsOf = (step: number, rank: number): [number, number] => {
  const from = (step % 5) * workers * batch + rank * batch;
  return [from, from + batch];
};

function trainAlone(make: () => Optimizer, count = steps): number[] {
  const network = new Network();
  const optimizer = make();
  for (let step = 0; step < count; ++step) {
    const all = samples(rowsOf(step, 0)[0], rowsOf(step, workers - 1)[1]);
    optimizer.minimize(() => network.loss(all), false, network.variables);
    tf.dispose([all.x, all.y]);
  }
  const values = network.values();
  network.dispose();
  return values;
}

async function trainTogether(
  make: () => Optimizer,
  options: DataParallelOptions,
): Promise<number[][]> {
  return asRanks(workers, async (comm) => {
    const network = new Network();
    const ddp = await DistributedDataParallel.create(network.variables, comm, options);
    const optimizer = make();
    for (let step = 0; step < steps; ++step) {
      const own = samples(...rowsOf(step, comm.rank));
      (await ddp.step(optimizer, () => network.loss(own))).dispose();
      tf.dispose([own.x, own.y]);
    }
    const values = network.values();
    network.dispose();
    return values;
  });
}

describe.each(modes)('%s', (mode) => {
  describe.each(Object.entries(optimizers))('%s', (_, make) => {
    test.each([
      { label: 'one bucket', bucketCapBytes: Infinity },
      { label: 'a bucket for each variable', bucketCapBytes: 4 },
    ])('$label', async ({ bucketCapBytes }) => {
      const alone = trainAlone(make);
      const together = await trainTogether(make, { mode, bucketCapBytes });
      expect(largestDifference(alone, new Network().values())).toBeGreaterThan(0.01);
      for (const values of together) {
        expect(values).toEqual(together[0]);
        expect(largestDifference(values, alone)).toBeLessThan(1e-5);
      }
    });
  });

  test('half the bytes, about the same', async () => {
    const alone = trainAlone(optimizers['sgd']!);
    const together = await trainTogether(optimizers['sgd']!, { mode, hook: 'float16' });
    for (const values of together) {
      expect(values).toEqual(together[0]);
      expect(largestDifference(values, alone)).toBeLessThan(2e-3);
    }
  });
});

describe.each(Object.entries(optimizers))('wrapped %s', (_, make) => {
  test('follows one worker too', async () => {
    const alone = trainAlone(make);
    const together = await asRanks(workers, async (comm) => {
      const network = new Network();
      const optimizer = new DistributedOptimizer(make(), comm, { groups: 2 });
      for (let step = 0; step < steps; ++step) {
        const own = samples(...rowsOf(step, comm.rank));
        await optimizer.minimizeAsync(() => network.loss(own), false, network.variables);
      }
      return network.values();
    });
    for (const values of together) expect(largestDifference(values, alone)).toBeLessThan(1e-5);
  });
});

test('batches of several passes', async () => {
  const alone = trainAlone(optimizers['adam']!, 1);
  const together = await asRanks(workers, async (comm) => {
    const network = new Network();
    const ddp = await DistributedDataParallel.create(network.variables, comm);
    const [from] = rowsOf(0, comm.rank);
    // Sums of means over halves: twice the mean over both, which adam's first step does not tell from it.
    const halves = [samples(from, from + 2), samples(from + 2, from + 4)];
    const half = (at: number) => (): Scalar => tf.mul(0.5, network.loss(halves[at]!));
    const kept = await ddp.noSync(() => ddp.gradients(half(0)));
    expect(kept.gradients).toEqual([]);
    await ddp.step(optimizers['adam']!(), half(1));
    return network.values();
  });
  for (const values of together) expect(largestDifference(values, alone)).toBeLessThan(1e-5);

  const wrapped = await asRanks(workers, async (comm) => {
    const network = new Network();
    const optimizer = new DistributedOptimizer(optimizers['adam']!(), comm, {
      backwardPassesPerStep: 2,
    });
    const [from] = rowsOf(0, comm.rank);
    const before = network.values();
    for (const at of [from, from + 2]) {
      expect(network.values()).toEqual(before);
      const own = samples(at, at + 2);
      const half = (): Scalar => tf.mul(0.5, network.loss(own));
      await optimizer.minimizeAsync(half, false, network.variables);
    }
    expect(optimizer.iterations).toBe(1);
    return network.values();
  });
  for (const values of wrapped) expect(largestDifference(values, alone)).toBeLessThan(1e-5);
});

test('batches of unequal length count by their samples', async () => {
  const alone = trainAlone(optimizers['sgd']!, 1);
  // Rank 0 has 1 of the 12 samples, rank 1 has 2, rank 2 the rest.
  const borders = [0, 1, 3, 12];
  const together = await asRanks(workers, async (comm) => {
    const network = new Network();
    const ddp = await DistributedDataParallel.create(network.variables, comm);
    const [from, to] = [borders[comm.rank]!, borders[comm.rank + 1]!];
    const own = samples(from, to);
    await ddp.step(optimizers['sgd']!(), () => network.loss(own), { samples: to - from });
    return network.values();
  });
  for (const values of together) expect(largestDifference(values, alone)).toBeLessThan(1e-5);
});

test('all ranks begin with the values of rank 0', async () => {
  const expected = new Network().values();
  const starts = await asRanks(workers, async (comm) => {
    const network = new Network();
    if (comm.rank > 0) for (const one of network.variables) one.assign(tf.zeros(one.shape));
    await DistributedDataParallel.create(network.variables, comm);
    return network.values();
  });
  for (const values of starts) expect(values).toEqual(expected);
});

describe('variables that a loss leaves out', () => {
  const leaving = (findUnused: boolean) =>
    asRanks(2, async (comm) => {
      const network = new Network();
      const ddp = await DistributedDataParallel.create(network.variables, comm, { findUnused });
      // Rank 1 uses the first bias only; nobody uses the second weights.
      const loss = (): Scalar =>
        comm.rank === 0
          ? tf.sum(tf.add(tf.sum(network.w1), tf.sum(network.b2)))
          : tf.sum(network.b1);
      const { value, gradients } = await ddp.gradients(loss);
      value.dispose();
      const tensors = gradients.map(({ tensor }) => tensor as Tensor | null);
      return tensors.map((tensor) => tensor && [...new Set(tensor.dataSync())]);
    });

  test('count as zeros', async () => {
    for (const seen of await leaving(false)) expect(seen).toEqual([[0.5], [0.5], [0], [0.5]]);
  });

  test('are left alone where nobody uses them', async () => {
    for (const seen of await leaving(true)) expect(seen).toEqual([[0.5], [0.5], null, [0.5]]);
  });
});

test('a loss that fails before anything was reduced can be tried again', async () => {
  await asRanks(1, async (comm) => {
    const network = new Network();
    const ddp = await DistributedDataParallel.create(network.variables, comm);
    const fails = ddp.gradients(() => {
      throw new Error('no loss');
    });
    await expect(fails).rejects.toThrow('no loss');
    await expect(ddp.gradients(() => network.loss(samples(0, 2)))).resolves.toBeDefined();
  });
});

test.each([true, false])('no tensor is left behind, with gather %s', async (gather) => {
  await asRanks(1, async (comm) => {
    const network = new Network();
    const ddp = await DistributedDataParallel.create(network.variables, comm, { gather });
    const own = samples(0, 4);
    const optimizer = tf.train.momentum(0.1, 0.9);
    (await ddp.step(optimizer, () => network.loss(own))).dispose();
    const before = tf.memory().numTensors;
    (await ddp.step(optimizer, () => network.loss(own))).dispose();
    expect(tf.memory().numTensors).toBe(before);
  });
});
