// What a method writes of its optimizer, and what it goes on from.
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import * as layers from '@tensorflow/tfjs-layers';
import { beforeAll, describe, expect, it } from 'vitest';

import type { NamedArray } from '../../../lib/train/checkpoints/types.js';
import { createMethod } from '../../../lib/measure/train/create-method.js';
import { trainTable } from '../../../lib/measure/train/train-options.js';
import { givenOptions } from '../../../lib/measure/common-run.js';
import { asRanks, samples, sines, useTestBackend } from '../../train/support.js';

beforeAll(async () => {
  await useTestBackend();
});

type Given = Partial<Parameters<typeof givenOptions<typeof trainTable>>[1]>;

/** A model with its method, and a step of theirs. */
async function methodOf(communicator: Parameters<Parameters<typeof asRanks>[1]>[0], given: Given) {
  const model = layers.sequential({
    layers: [layers.layers.dense({ units: 2, inputShape: [3] })],
  });
  model.setWeights([tf.tensor2d(sines(6, 0.4), [3, 2]), tf.tensor1d(sines(2, 0.3))]);
  const config = { ...givenOptions(trainTable, given), dataset: 'mnist' as const };
  const method = await createMethod({ model, communicator, config });
  const step = async (at: number): Promise<void> => {
    const { x, y } = samples(4 * at, 4 * at + 4);
    await method.step(() => tf.mean(tf.square(tf.sub(model.apply(x) as tf.Tensor, y))));
    tf.dispose([x, y]);
  };
  const values = () => model.getWeights().map((weight) => [...weight.dataSync()]);
  return { model, method, step, values };
}

/** Version 0.2 numbered what getWeights() gave. */
const asOld = ({ shape, data, name }: NamedArray, index: number): NamedArray => ({
  name: `optimizer/${index}/${index === 0 ? 'iter' : name.split('/').at(-1)!}`,
  shape,
  data,
});

describe('a method', () => {
  it.each([
    [false, 4],
    [true, 2],
  ])(
    'that reduces gradients keeps momenta, with shared steps %s %d of two ranks',
    async (shard, momenta) => {
      const kept = await asRanks(2, async (comm) => {
        const { step } = await methodOf(comm, { shard, optimizer: 'momentum' });
        // All ranks share this process's tensors.
        await comm.barrier();
        const before = tf.memory().numTensors;
        await comm.barrier();
        await step(0);
        await comm.barrier();
        return tf.memory().numTensors - before;
      });
      expect(kept).toEqual([momenta, momenta]);
    },
  );

  it.each([
    ['as 0.2 wrote it', {}, {}],
    ['of shared steps', { shard: true }, {}],
    ['of its own, with shared steps', {}, { shard: true }],
    ['of averaged weights', { distOptimizer: 'allreduce' }, { distOptimizer: 'local_sgd' }],
    ['of a store', { distOptimizer: 'kv:local' }, { distOptimizer: 'kv:local' }],
  ] as const)('goes on from the state %s', async (form, before, after) => {
    const old = form.startsWith('as 0.2');
    const optimizer = old ? 'momentum' : 'adam';
    const ranks = form.endsWith('store') ? 1 : 2;
    const results = await asRanks(ranks, async (comm) => {
      const first = await methodOf(comm, { ...before, optimizer });
      for (const at of [0, 1]) await first.step(at);
      const second = await methodOf(comm, { ...after, optimizer });
      second.model.setWeights(first.model.getWeights());
      const state = await first.method.state();
      await second.method.setState(old ? state.map(asOld) : state);
      await first.step(2);
      await second.step(2);
      return [second.values(), first.values()];
    });
    for (const [own, expected] of results) expect(own).toEqual(expected);
  });
});
