// Training methods by their `--dist-optimizer` names.
import type { Optimizer, Scalar } from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';

import type { Communicator } from '../../communicator/communicator.js';
import type { NamedArray } from '../../train/checkpoints/types.js';
import { monotonicSeconds } from '../../time.js';
import { DistributedDataParallel } from '../../train/data-parallel.js';
import type { Timeline } from '../../files/timeline.js';
import { setStateArrays, stateArrays } from '../../train/optimizer-arrays.js';
import { Shards } from '../../train/shards.js';
import { tf } from '../../train/tfjs.js';
import type { InnerOptimizer, PassTimes } from '../../train/types.js';
import { trainableVariables } from '../../train/variables.js';
import type { TrainingMethod } from './method.js';
import type { TrainOptimizer } from './train-options.js';
import type { StepParts, TrainConfig } from './types.js';

export interface MethodOptions {
  readonly model: LayersModel;
  readonly communicator: Communicator;
  readonly config: TrainConfig;
  readonly timeline?: Timeline | undefined;
}

export function makeOptimizer(name: TrainOptimizer, learningRate: number): Optimizer {
  switch (name) {
    case 'sgd':
      return tf.train.sgd(learningRate);
    case 'momentum':
      return tf.train.momentum(learningRate, 0.9);
    case 'adam':
      return tf.train.adam(learningRate);
  }
}

/** The state of an optimizer that every rank keeps whole, as arrays, and its restoration. */
export function wholeState(
  { model, communicator }: MethodOptions,
  optimizer: InnerOptimizer,
): Pick<TrainingMethod, 'state' | 'setState'> {
  const variables = trainableVariables(model);
  const shards = new Shards(variables, communicator, { calls: {} });
  return {
    state: () => stateArrays(optimizer, variables, shards, communicator, {}),
    async setState(arrays) {
      if (isOld(arrays)) return setOldState(optimizer, arrays);
      setStateArrays(optimizer, variables, shards.own, arrays);
    },
  };
}

/** As in version 0.2 and earlier: whole, by `getWeights()`. */
const isOld = (arrays: readonly NamedArray[]): boolean =>
  arrays.some(({ name }) => name.startsWith('optimizer/0/'));

async function setOldState(
  optimizer: InnerOptimizer,
  arrays: readonly NamedArray[],
): Promise<void> {
  const weights = arrays
    .filter(({ name }) => name.startsWith('optimizer/'))
    .map(({ name, shape, data }) => ({
      name: name.replace(/^optimizer\/\d+\//, ''),
      tensor: tf.tensor(data, [...shape], data instanceof Int32Array ? 'int32' : 'float32'),
    }));
  await optimizer.setWeights(weights);
}

/** Bytes and number of the trained arrays. */
export function gradientSizes(model: LayersModel): {
  readonly gradientBytes: number;
  readonly gradientArrays: number;
} {
  const variables = trainableVariables(model);
  const elements = variables.reduce((sum, { size }) => sum + size, 0);
  return {
    gradientBytes: elements * Float32Array.BYTES_PER_ELEMENT,
    gradientArrays: variables.length,
  };
}

/** Gradients are averaged over all ranks in buckets, then every rank makes the same step. */
export async function gradientAllReduceMethod(options: MethodOptions): Promise<TrainingMethod> {
  const { model, communicator, config, timeline } = options;
  const { mode, hook, bucketCapBytes, shard } = config;
  const ddp = await DistributedDataParallel.create(model, communicator, {
    mode,
    hook,
    bucketCapBytes,
    shard,
    timeline,
  });
  const update = timedUpdate(makeOptimizer(config.optimizer, config.learningRate));
  const { optimizer } = update;
  return {
    ...gradientSizes(model),
    async step(loss: () => Scalar) {
      const start = monotonicSeconds();
      update.seconds = 0;
      const value = await ddp.step(optimizer, loss);
      const seconds = monotonicSeconds() - start;
      const { modelSeconds, ...parts } = stepParts(ddp.times!, seconds, update.seconds);
      return { loss: take(value), parts: shard ? { ...parts, modelSeconds } : parts };
    },
    state: () => ddp.optimizerState(optimizer),
    async setState(arrays) {
      if (isOld(arrays)) return setOldState(optimizer, arrays);
      ddp.setOptimizerState(optimizer, arrays);
    },
    close() {
      optimizer.dispose();
      return Promise.resolve();
    },
  };
}

/** The scalar's value; disposes it. */
export function take(scalar: Scalar): number {
  const [value = NaN] = scalar.dataSync();
  scalar.dispose();
  return value;
}

/** The parts that a pass has timed. */
function passParts({
  forwardSeconds,
  backwardSeconds,
  waitSeconds,
  copySeconds,
}: PassTimes): Pick<
  StepParts,
  'forwardSeconds' | 'backwardSeconds' | 'copySeconds' | 'exposedSeconds'
> {
  return {
    forwardSeconds,
    backwardSeconds: Math.max(0, backwardSeconds - waitSeconds - copySeconds),
    copySeconds,
    exposedSeconds: waitSeconds,
  };
}

/** The parts of a step of `seconds`: its pass, `updateSeconds` of applying, and the rest for exchanging weights. */
export function stepParts(times: PassTimes, seconds: number, updateSeconds: number) {
  const pass = passParts(times);
  const { forwardSeconds, backwardSeconds, copySeconds, exposedSeconds } = pass;
  const rest = seconds - forwardSeconds - backwardSeconds - copySeconds - exposedSeconds;
  return { ...pass, updateSeconds, modelSeconds: Math.max(0, rest - updateSeconds) };
}

/** The optimizer with the duration of its steps since `seconds` was reset. */
export function timedUpdate(optimizer: Optimizer): {
  readonly optimizer: Optimizer;
  seconds: number;
} {
  const timed = { optimizer, seconds: 0 };
  const applyGradients = optimizer.applyGradients.bind(optimizer);
  optimizer.applyGradients = (gradients) => {
    const start = monotonicSeconds();
    applyGradients(gradients);
    timed.seconds += monotonicSeconds() - start;
  };
  return timed;
}
