// Linear regression over ranks that each have their own noisy samples, by every algorithm.
import * as tf from '@tensorflow/tfjs-core';
import type { Scalar, Tensor2D } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import { beforeAll, describe, expect, test } from 'vitest';

import type { Communicator } from '../../lib/communicator/communicator.js';
import { onePeerSchedule, uniformWeights } from '../../lib/topology/schedules.js';
import { exponentialTwoGraph, ringGraph } from '../../lib/topology/generators.js';
import { broadcastVariables, DistributedOptimizer } from '../../lib/train/index.js';
import type { DistributedOptimizerOptions, StepNeighbors } from '../../lib/train/index.js';
import { asRanks, sines, useTestBackend } from './support.js';

const ranks = 4;
const rows = 8;
const features = 5;
const noise = 0.1;

beforeAll(async () => {
  await useTestBackend();
});

interface Rows {
  readonly x: Tensor2D;
  readonly y: Tensor2D;
}

/** A rank's own rows: y = x · truth + noise. */
function rowsOf(rank: number): Rows {
  const x = tf.tensor2d(
    sines(ranks * rows * features, 0.917).slice(
      rank * rows * features,
      (rank + 1) * rows * features,
    ),
    [rows, features],
  );
  const truth = tf.tensor2d([1, -2, 3, 0.5, -1.5], [features, 1]);
  const errors = tf.tensor2d(sines(ranks * rows, 2.31).slice(rank * rows, (rank + 1) * rows), [
    rows,
    1,
  ]);
  return { x, y: tf.add(tf.matMul(x, truth), tf.mul(noise, errors)) };
}

const squares = ({ x, y }: Rows, w: Tensor2D): Scalar =>
  tf.mean(tf.square(tf.sub(tf.matMul(x, w), y)));

/** The mean square over all rows, of the best weights there are: found by many steps on all rows. */
function noiseFloor(): number {
  const parts = Array.from({ length: ranks }, (_, rank) => rowsOf(rank));
  const all = {
    x: tf.concat(parts.map(({ x }) => x)),
    y: tf.concat(parts.map(({ y }) => y)),
  };
  const w = tf.variable(tf.zeros([features, 1])) as Tensor2D & tf.Variable;
  const optimizer = tf.train.sgd(0.5);
  for (let step = 0; step < 400; ++step) optimizer.minimize(() => squares(all, w), false, [w]);
  return squares(all, w).dataSync()[0]!;
}

/** Mean squares over all rows of each rank's weights after some steps. */
async function regress(
  options: DistributedOptimizerOptions,
  prepare?: (comm: Communicator) => unknown,
  neighborsOf?: (comm: Communicator) => (step: number) => StepNeighbors,
): Promise<number[]> {
  return asRanks(ranks, async (comm) => {
    await prepare?.(comm);
    const own = rowsOf(comm.rank);
    const w = tf.variable(tf.tensor2d(sines(features, comm.rank + 1), [features, 1])) as Tensor2D &
      tf.Variable;
    await broadcastVariables([w], comm);
    const inner = tf.train.sgd(0.2);
    const optimizer = new DistributedOptimizer(inner, comm, {
      ...options,
      ...(neighborsOf === undefined ? {} : { neighbors: neighborsOf(comm) }),
    });
    for (let step = 0; step < 240; ++step) {
      // Ever smaller steps: with constant ones, ranks that average stay a little apart.
      inner.setLearningRate(0.4 / (1 + step / 30));
      await optimizer.minimizeAsync(() => squares(own, w), false, [w]);
    }
    // Others may still look for this rank's values.
    await comm.barrier();
    await optimizer.close();
    let sum = 0;
    for (let rank = 0; rank < ranks; ++rank) sum += squares(rowsOf(rank), w).dataSync()[0]!;
    return sum / ranks;
  });
}

const onePeer = (comm: Communicator): ((step: number) => StepNeighbors) => {
  const schedule = onePeerSchedule(exponentialTwoGraph(comm.size), comm.rank);
  let next = 0;
  let neighbors: StepNeighbors | undefined;
  return (step) => {
    for (; next <= step; ++next) {
      neighbors = uniformWeights(schedule.next().value);
    }
    return neighbors!;
  };
};

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

describe('linear regression comes down to the noise', () => {
  const ring = (comm: Communicator) => {
    comm.setTopology(ringGraph(comm.size));
  };

  test.each([
    ['gradient-allreduce', undefined, undefined],
    ['adapt-with-combine', ring, undefined],
    ['adapt-with-combine', undefined, onePeer],
    ['adapt-then-combine', ring, undefined],
    ['adapt-then-combine', undefined, onePeer],
    [
      'hierarchical',
      (comm: Communicator) => comm.setMachineTopology(undefined, { ranksPerNode: 2 }),
      undefined,
    ],
    ['local-sgd', undefined, undefined],
    ['adasum', undefined, undefined],
    ['window-put', undefined, undefined],
  ] as const)('%s %s %s', async (algorithm, prepare, neighborsOf) => {
    const floor = noiseFloor();
    expect(floor).toBeLessThan(noise ** 2);
    const got = await regress({ algorithm }, prepare, neighborsOf);
    for (const square of got) expect(square).toBeLessThan(floor * 1.02);
  });
});

test('alone, ranks stay apart', async () => {
  // So that the test above means something: one rank's rows do not tell the weights that are best for all.
  const got = await regress({ algorithm: 'local-sgd', stepsPerCommunication: 1000 });
  expect(Math.max(...got)).toBeGreaterThan(noiseFloor() * 1.02);
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
  const after = async (algorithm: 'adapt-with-combine' | 'adapt-then-combine' | 'adasum') =>
    asRanks(2, async (comm) => {
      const w = tf.variable(tf.scalar(comm.rank));
      const optimizer = new DistributedOptimizer(tf.train.sgd(comm.rank === 0 ? 1 : 0.5), comm, {
        algorithm,
      });
      await optimizer.minimizeAsync(() => tf.mul<Scalar>(w, 1), false, [w]);
      return w.dataSync()[0];
    });
  expect(await after('adapt-with-combine')).toEqual([-0.5, 0]);
  expect(await after('adapt-then-combine')).toEqual([-0.25, -0.25]);
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
  // Changes of -1 and -0.5: (1 - 0.25) * -1 + (1 - 1) * -0.5.
  expect(await after('adasum')).toEqual([-0.75, 0.25]);
});
