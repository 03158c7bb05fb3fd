// What each algorithm makes of the weights of its ranks, step by step.
import * as tf from '@tensorflow/tfjs-core';
import type { Scalar } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { beforeAll, describe, expect, test } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import { onePeerSchedule, uniformWeights } from '../../lib/topology/schedules.js';
import { exponentialTwoGraph } from '../../lib/topology/generators.js';
import { DistributedOptimizer } from '../../lib/train/index.js';
import type { TrainingAlgorithm } from '../../lib/train/index.js';
import { asRanks, useTestBackend } from './support.js';

beforeAll(async () => {
  await useTestBackend();
});

describe('neighbours', () => {
  test.each([
    [
      'local-sgd',
      { neighbors: () => ({}) },
      /^neighbors.*'adapt-with-combine'.*'adapt-then.*'local-sgd'/,
    ],
    ['hierarchical', { neighbors: () => ({}) }, /^neighbors.*'hier/],
    [
      'adapt-then-combine',
      { machineNeighbors: () => ({}) },
      /^machineNeighbors.*'hierarchical'.*'adapt/,
    ],
    ['adapt-then-combine', { neighbors: [1] }, /a function/],
  ] as const)('are refused where they mean nothing: %s', async (algorithm, options, message) => {
    await asRanks(1, (comm) => {
      const make = () =>
        new DistributedOptimizer(tf.train.sgd(0.1), comm, { algorithm, ...options } as never);
      expect(make).toThrow(message);
      return Promise.resolve();
    });
  });
});

test('adasum adds what points apart and averages what is equal, by variable', async () => {
  // The changes of each rank: rank 2 joins rank 0 first, and changes nothing.
  const changes = [
    [[1, 0, 0], [2]],
    [[0, 3, 0], [2]],
    [[0, 0, 0], [0]],
  ];
  const got = await asRanks(3, async (comm) => {
    const list = [3, 1].map((size) => tf.variable(tf.zeros([size])));
    const optimizer = new DistributedOptimizer(tf.train.sgd(1), comm, { algorithm: 'adasum' });
    const [of3, of1] = changes[comm.rank]!;
    // The step is the negative gradient.
    const loss = () =>
      tf.neg<Scalar>(tf.add(tf.sum(tf.mul(list[0]!, of3!)), tf.sum(tf.mul(list[1]!, of1!))));
    await optimizer.minimizeAsync(loss, false, list);
    return list.map((one) => [...one.dataSync()]);
  });
  expect(got).toEqual(changes.map(() => [[1, 3, 0], [2]]));
});

test('the wrapped optimizer follows the formula of each algorithm', async () => {
  // One weight, rank r starts at r and has the gradient 1: two ranks, whose average is 0.5.
  const after = (
    algorithm: TrainingAlgorithm,
    size = 2,
    prepare?: (comm: Communicator) => Promise<void>,
  ) =>
    asRanks(size, async (comm) => {
      await prepare?.(comm);
      const w = tf.variable(tf.scalar(comm.rank));
      const optimizer = new DistributedOptimizer(tf.train.sgd(comm.rank === 0 ? 1 : 0.5), comm, {
        algorithm,
      });
      await optimizer.minimizeAsync(() => tf.mul<Scalar>(w, 1), false, [w]);
      return w.dataSync()[0];
    });
  expect(await after('adapt-with-combine')).toEqual([-0.5, 0]);
  expect(await after('adapt-then-combine')).toEqual([-0.25, -0.25]);
  // Two nodes of two ranks, whose average is 1.5.
  const inPairs = (comm: Communicator) => comm.setMachineTopology(undefined, { ranksPerNode: 2 });
  expect(await after('hierarchical', 4, inPairs)).toEqual([0.5, 1, 1, 1]);
  // Ranks that go on by themselves meet in every eighth step.
  const apart = await asRanks(2, async (comm) => {
    const w = tf.variable(tf.scalar(comm.rank));
    const optimizer = new DistributedOptimizer(tf.train.sgd(1), comm, { algorithm: 'local-sgd' });
    const seen: number[] = [];
    for (let step = 0; step < 9; ++step) {
      await optimizer.minimizeAsync(() => tf.mul<Scalar>(w, 1), false, [w]);
      seen.push(w.dataSync()[0]!);
    }
    return seen;
  });
  const same = apart[0]!.map((value, step) => value === apart[1]![step]);
  expect(same.indexOf(true)).toBe(7);
  expect(apart[0]![7]).toBe(0.5 - 8);
  // Changes of -1 and -0.5: (1 - 0.25) * -1 + (1 - 1) * -0.5.
  expect(await after('adasum')).toEqual([-0.75, 0.25]);
});

test.each(['adapt-with-combine', 'adapt-then-combine'] as const)(
  '%s takes other neighbours in each step: all have met after a period',
  async (algorithm) => {
    const values = await asRanks(4, async (comm) => {
      const schedule = onePeerSchedule(exponentialTwoGraph(4), comm.rank);
      const period = 2;
      const each = Array.from({ length: period }, () => uniformWeights(schedule.next().value));
      const neighbors = (step: number) => each[step]!;
      const optimizer = new DistributedOptimizer(tf.train.sgd(1), comm, { algorithm, neighbors });
      const w = tf.variable(tf.scalar(comm.rank));
      for (let step = 0; step < period; ++step) {
        await optimizer.minimizeAsync(() => tf.mul<Scalar>(w, 0), false, [w]);
      }
      return w.dataSync()[0];
    });
    expect(values).toEqual([1.5, 1.5, 1.5, 1.5]);
  },
);

test('window-put steps, and brings together what ranks put without waiting', async () => {
  const values = await asRanks(2, async (comm) => {
    const w = tf.variable(tf.scalar(comm.rank));
    const optimizer = new DistributedOptimizer(tf.train.sgd(1), comm, { algorithm: 'window-put' });
    for (let step = 0; step < 60; ++step) {
      // By one in the first step, then not at all.
      await optimizer.minimizeAsync(() => tf.mul<Scalar>(w, step === 0 ? 1 : 0), false, [w]);
      // What was put has arrived.
      await comm.barrier();
    }
    await optimizer.close();
    return w.dataSync()[0]!;
  });
  expect(values[0]).toBeCloseTo(values[1]!, 5);
  expect(values[0]).toBeGreaterThan(-1);
  expect(values[0]).toBeLessThan(0);
});
