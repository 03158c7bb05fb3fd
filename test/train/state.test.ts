// What decides the next step, after it was broadcast; and steps that fail on one rank.
import * as tf from '@tensorflow/tfjs-core';
import type { Scalar, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';
import '@tensorflow/tfjs-backend-cpu';
import * as layers from '@tensorflow/tfjs-layers';
import { beforeAll, describe, expect, it } from 'vitest';

import type { Communicator } from '../../lib/index.js';
import {
  broadcastOptimizerState,
  broadcastVariables,
  DistributedDataParallel,
  DistributedOptimizer,
} from '../../lib/train/index.js';
import { asRanks, Network, samples, sines, useTestBackend } from './support.js';

beforeAll(async () => {
  await useTestBackend();
});

/** Adam with a decay of its own, counted in what getConfig() does not tell, and slow weights beside. */
class Decayed extends tf.AdamOptimizer {
  readonly schedule = { rates: [1, 0.5], at: 0 };
  readonly slow: Variable[] = [];
  constructor(
    readonly weightDecay: number,
    rate = 0.1,
  ) {
    super(rate, 0.9, 0.999);
  }
  override applyGradients(gradients: Parameters<tf.AdamOptimizer['applyGradients']>[0]): void {
    const scale = this.schedule.rates[this.schedule.at++ % 2]! * (1 - this.weightDecay);
    const list = gradients as NamedTensor[];
    const scaled = list.map(({ name, tensor }) => ({ name, tensor: tf.mul(tensor, scale) }));
    if (this.slow.length === 0) this.slow.push(tf.variable(tf.scalar(this.schedule.at), false));
    super.applyGradients(scaled);
  }
}

/** What it has is its own alone; getWeights() and setWeights() tell of it. */
class Hidden extends tf.SGDOptimizer {
  #decay = 1;
  override applyGradients(gradients: Parameters<tf.AdamOptimizer['applyGradients']>[0]): void {
    this.#decay *= 0.5;
    const list = gradients as NamedTensor[];
    const scaled = list.map(({ name, tensor }) => ({ name, tensor: tf.mul(tensor, this.#decay) }));
    super.applyGradients(scaled);
  }
  override async getWeights(): Promise<NamedTensor[]> {
    return [...(await super.getWeights()), { name: 'decay', tensor: tf.scalar(this.#decay) }];
  }
  override async setWeights(weights: NamedTensor[]): Promise<void> {
    await super.setWeights(weights.slice(0, 1));
    this.#decay = weights[1]!.tensor.dataSync()[0]!;
  }
}

/** Of each optimizer, one as a run has left it and one as a fresh start has it. */
const optimizers: Readonly<Record<string, (resumed: boolean) => tf.Optimizer>> = {
  sgd: (resumed) => tf.train.sgd(resumed ? 0.01 : 0.3),
  momentum: (resumed) => tf.train.momentum(resumed ? 0.01 : 0.3, resumed ? 0.8 : 0.1),
  nesterov: (resumed) => tf.train.momentum(0.01, 0.8, resumed),
  // Its setMomentum() changes what getConfig() tells and not what it steps by.
  'momentum, set': (resumed) => {
    const optimizer = tf.train.momentum(0.01, 0.8);
    if (resumed) optimizer.setMomentum(0.1);
    return optimizer;
  },
  adagrad: (resumed) => tf.train.adagrad(resumed ? 0.01 : 0.3, resumed ? 0.2 : 0.1),
  adadelta: (resumed) => tf.train.adadelta(resumed ? 0.5 : 1, resumed ? 0.9 : 0.5, 1e-4),
  adam: (resumed) => tf.train.adam(resumed ? 0.01 : 0.3, resumed ? 0.7 : 0.9, 0.99, 1e-3),
  adamax: (resumed) => tf.train.adamax(resumed ? 0.01 : 0.3, 0.7, 0.99, 1e-3, resumed ? 0.1 : 0),
  rmsprop: (resumed) => tf.train.rmsprop(resumed ? 0.01 : 0.3, resumed ? 0.7 : 0.9, 0.5, 1e-3),
  'rmsprop, centered': (resumed) => tf.train.rmsprop(0.01, 0.7, 0.5, 1, resumed),
  'of a class of one’s own': (resumed) => new Decayed(resumed ? 0.1 : 0.2, resumed ? 0.1 : 0.2),
  'with private parts': (resumed) => new Hidden(resumed ? 0.1 : 0.2),
};

describe('broadcastOptimizerState', () => {
  const cases = Object.keys(optimizers).flatMap((name) =>
    (['the root', 'another rank', 'both'] as const).map((who) => [name, who] as const),
  );
  it.each(cases)('%s, where %s has stepped before', async (name, who) => {
    const root = 1;
    const values = await asRanks(3, async (comm) => {
      const isRoot = comm.rank === root;
      const network = new Network();
      const optimizer = optimizers[name]!(isRoot);
      const own = samples(0, 8);
      const step = (on: tf.Optimizer) =>
        on.minimize(() => network.loss(own), false, network.variables);
      // Many: what is multiplied step by step is no power of as many steps.
      if (isRoot ? who !== 'another rank' : who !== 'the root') {
        for (let i = 0; i < 13; ++i) step(optimizer);
      }
      await broadcastVariables(network.variables, comm, { root });
      await broadcastOptimizerState(optimizer, comm, { root });
      for (let i = 0; i < 3; ++i) step(optimizer);
      return { values: network.values(), config: optimizer.getConfig() };
    });
    for (const one of values) {
      expect(one.values).toEqual(values[root]!.values);
      expect(one.config).toEqual(values[root]!.config);
    }
  });

  it('the optimizer of a compiled model, and one that is wrapped, with its counts', async () => {
    const values = await asRanks(2, async (comm) => {
      const w = tf.variable(tf.tensor1d([1, 2]));
      const loss = (): Scalar => tf.sum(tf.square(tf.mul(w, 3 + comm.rank)));
      const model = layers.sequential({
        layers: [layers.layers.dense({ units: 1, inputShape: [1] })],
      });
      const fresh = comm.rank === 1;
      model.compile({ optimizer: tf.train.adam(fresh ? 0.5 : 0.1), loss: 'meanSquaredError' });
      const wrapped = new DistributedOptimizer(model.optimizer, comm, {
        algorithm: 'local-sgd',
        stepsPerCommunication: 4,
      });
      // The root is in the midst of its local steps: the others meet it at its next averaging.
      if (!fresh) for (let i = 0; i < 3; ++i) await wrapped.minimizeAsync(loss, false, [w]);
      await broadcastVariables([w], comm);
      await broadcastOptimizerState(wrapped, comm);
      expect(model.optimizer.getConfig()).toMatchObject({ learningRate: 0.1 });
      await wrapped.minimizeAsync(loss, false, [w]);
      return [...w.dataSync()];
    });
    expect(values[1]).toEqual(values[0]);
  });

  it('leaves no tensor behind', async () => {
    await asRanks(1, async (comm) => {
      const network = new Network();
      const optimizer = tf.train.adam(0.1);
      optimizer.minimize(() => network.loss(samples(0, 2)), false, network.variables);
      const before = tf.memory().numTensors;
      await broadcastOptimizerState(optimizer, comm);
      expect(tf.memory().numTensors).toBe(before);
    });
  });
});

/** How each rank's call ended, which none may wait for. */
async function ended(body: (comm: Communicator) => Promise<unknown>): Promise<unknown[]> {
  return await asRanks(2, async (comm) =>
    body(comm).then(
      () => 'done',
      (error: unknown) => error,
    ),
  );
}

describe('what differs between ranks is told to all', () => {
  class Named extends tf.SGDOptimizer {
    // Where no property shows it.
    readonly #decay: number;
    constructor(decay: number) {
      super(0.1);
      this.#decay = decay;
    }
    override getConfig() {
      return { ...super.getConfig(), decay: this.#decay };
    }
  }
  const wrapped = (comm: Communicator, steps: number) =>
    new DistributedOptimizer(tf.train.sgd(0.1), comm, {
      algorithm: 'local-sgd',
      stepsPerCommunication: steps,
    });
  const frozen = (isFrozen: boolean) => [tf.variable(tf.scalar(1), !isFrozen)];
  const calls: readonly (readonly [string, RegExp, (comm: Communicator) => Promise<void>])[] = [
    [
      'classes of optimizers',
      /SGD.*Momentum/,
      (comm) =>
        broadcastOptimizerState(
          comm.rank === 0 ? tf.train.sgd(1) : tf.train.momentum(1, 0.5),
          comm,
        ),
    ],
    [
      'a setting that cannot travel',
      /\bdecay is 0\b.*\b1 on rank 1\b/,
      (comm) => broadcastOptimizerState(new Named(comm.rank), comm),
    ],
    [
      'a setting of the wrapper',
      /\bstepsPerCommunication is 1\b.*\b2 on rank 1\b/,
      (comm) => broadcastOptimizerState(wrapped(comm, 1 + comm.rank), comm),
    ],
    [
      'roots',
      /rank 0.*rank 1/,
      (comm) => broadcastOptimizerState(tf.train.sgd(1), comm, { root: comm.rank }),
    ],
    [
      'shapes',
      /\[2,3\].*\[3,2\]/,
      (comm) => broadcastVariables([tf.variable(tf.zeros([2 + comm.rank, 3 - comm.rank]))], comm),
    ],
    ['what is trained', /not trained/, (comm) => broadcastVariables(frozen(comm.rank === 1), comm)],
  ];
  it.each(calls)('%s', async (_, message, call) => {
    for (const error of await ended(call)) {
      expect(error).toMatchObject({
        code: 'ERR_MISMATCH',
        usable: true,
        message: expect.stringMatching(message) as string,
      });
    }
  });
});

describe('a call that fails on one rank fails on all at once, with its reason', () => {
  const lost = (): Variable[] => {
    const one = tf.variable(tf.scalar(1));
    one.dispose();
    return [one];
  };
  const none = {} as never;
  const begun: readonly (readonly [
    string,
    (comm: Communicator, bad: boolean) => Promise<unknown>,
  ])[] = [
    ['no variables', (comm, bad) => broadcastVariables(bad ? none : frozen(), comm)],
    ['disposed ones', (comm, bad) => broadcastVariables(bad ? lost() : frozen(), comm)],
    ['no optimizer', (comm, bad) => broadcastOptimizerState(bad ? none : tf.train.sgd(1), comm)],
    [
      'an option',
      (comm, bad) => broadcastOptimizerState(tf.train.sgd(1), comm, bad ? { root: 7 } : {}),
    ],
    ['no model', (comm, bad) => DistributedDataParallel.create(bad ? [] : frozen(), comm)],
  ];
  const frozen = (): Variable[] => [tf.variable(tf.scalar(1))];
  it.each(begun)('%s: the communicator stays usable', async (_, call) => {
    for (const bad of [0, 1]) {
      const [own, other] = await asRanks(2, async (comm) => {
        const told = await call(comm, comm.rank === bad).then(
          () => undefined,
          (error: unknown) => error as Error,
        );
        await comm.barrier();
        return told;
      }).then((told) => [told[bad]!, told[1 - bad]!]);
      expect(own).toMatchObject({
        code: expect.stringMatching(/^ERR_(INVALID_ARG|OUT_OF)/) as string,
      });
      expect(other).toMatchObject({ code: 'ERR_MISMATCH', rank: bad, usable: true });
      expect(other!.message).toContain(own!.message.slice(0, 40));
    }
  });

  const fails = (): Scalar => {
    throw new Error('no loss');
  };
  const good = (w: Variable) => (): Scalar => tf.square(w) as Scalar;
  const step = async (
    comm: Communicator,
    bad: boolean,
    algorithm: 'adasum' | 'adapt-with-combine',
  ) => {
    const w = tf.variable(tf.scalar(2));
    const optimizer = new DistributedOptimizer(tf.train.sgd(0.1), comm, { algorithm });
    await optimizer.minimizeAsync(bad ? fails : good(w), false, [w]);
    await optimizer.minimizeAsync(good(w), false, [w]);
  };
  const steps: typeof begun = [
    [
      'a loss',
      async (comm, bad) => {
        const w = tf.variable(tf.scalar(2));
        const ddp = await DistributedDataParallel.create([w], comm);
        await ddp.step(tf.train.sgd(0.1), bad ? fails : good(w));
      },
    ],
    [
      'samples',
      async (comm, bad) => {
        const w = tf.variable(tf.scalar(2));
        const ddp = await DistributedDataParallel.create([w], comm);
        await ddp.step(tf.train.sgd(0.1), good(w), { samples: bad ? -1 : 1 });
      },
    ],
    [
      'the optimizer',
      async (comm, bad) => {
        const w = tf.variable(tf.scalar(2));
        const ddp = await DistributedDataParallel.create([w], comm);
        const breaks = { applyGradients: fails };
        await ddp.step(bad ? breaks : tf.train.sgd(0.1), good(w));
        await ddp.step(tf.train.sgd(0.1), good(w));
      },
    ],
    ['a loss, averaging before', (comm, bad) => step(comm, bad, 'adapt-with-combine')],
    ['a loss, averaging after', (comm, bad) => step(comm, bad, 'adasum')],
    [
      'the gradients that are applied',
      async (comm, bad) => {
        const w = tf.variable(tf.tensor1d(sines(3, 1)));
        const optimizer = new DistributedOptimizer(tf.train.sgd(0.1), comm, {
          algorithm: 'adasum',
        });
        // The averaging blocks: the good one comes second.
        if (!bad) await new Promise((resolve) => setImmediate(resolve));
        optimizer.applyGradients([{ name: w.name, tensor: tf.zeros(bad ? [7] : [3]) }]);
      },
    ],
  ];
  it.each(steps)('%s: the others get ERR_ABORTED', async (_, call) => {
    const [other, own] = await ended((comm) => call(comm, comm.rank === 1));
    expect((own as { code?: unknown }).code).not.toBe('ERR_ABORTED');
    expect(other).toMatchObject({ code: 'ERR_ABORTED' });
    expect((other as Error).message).toContain((own as Error).message.slice(0, 40));
  });
});
