// Training over a key-value store.
import type { Scalar } from '@tensorflow/tfjs-core';

import { GradlinkError } from '../../errors.js';
import { KVStore } from '../../kvstore/kvstore.js';
import { isDistributed, parseStoreType } from '../../kvstore/types.js';
import { Adam } from '../../optimizers/adam.js';
import type { Optimizer as StoreOptimizer } from '../../optimizers/optimizer.js';
import { SGD } from '../../optimizers/sgd.js';
import { monotonicSeconds } from '../../time.js';
import { KVStoreTrainer } from '../../train/kvstore-trainer.js';
import {
  gradientSizes,
  makeOptimizer,
  stepParts,
  take,
  timedUpdate,
  wholeState,
  type MethodOptions,
} from './methods.js';
import type { TrainingMethod } from './method.js';
import type { TrainConfig } from './types.js';

function storeOptimizer({ optimizer, learningRate }: TrainConfig): StoreOptimizer {
  switch (optimizer) {
    case 'sgd':
      return new SGD({ learningRate });
    case 'momentum':
      return new SGD({ learningRate, momentum: 0.9 });
    case 'adam':
      return new Adam({ learningRate });
  }
}

/**
 * Pushes each gradient to a store of this type and pulls the sum, with which every worker makes the same step. If every
 * push is a step (`dist_async`), pulls the weights.
 *
 * @throws GradlinkError ERR_UNSUPPORTED for a single-worker store in a job of several, and for checkpoints with a store
 *   that keeps the weights.
 */
export async function storeMethod(type: string, options: MethodOptions): Promise<TrainingMethod> {
  const { model, communicator, config, timeline } = options;
  const { kind } = parseStoreType(type);
  const { size } = communicator;
  if (size > 1 && !isDistributed(kind)) {
    const message = `a store of type ${kind} serves a single worker, and there are ${size}; use dist_sync or allreduce`;
    throw new GradlinkError('ERR_UNSUPPORTED', message);
  }
  const inStore = kind.startsWith('dist_async');
  if (inStore && config.checkpointFolder !== undefined) {
    const message = `a store of type ${kind} keeps the weights on its servers, which checkpoints do not hold`;
    throw new GradlinkError('ERR_UNSUPPORTED', message);
  }
  const kv = await KVStore.create(kind);
  const update = timedUpdate(makeOptimizer(config.optimizer, config.learningRate));
  const trainer = await KVStoreTrainer.create(model, kv, {
    optimizer: inStore ? storeOptimizer(config) : update.optimizer,
    timeline,
  });
  return {
    ...gradientSizes(model),
    async step(loss: () => Scalar) {
      const start = monotonicSeconds();
      update.seconds = 0;
      const value = await trainer.step(loss);
      const seconds = monotonicSeconds() - start;
      return { loss: take(value), parts: stepParts(trainer.times!, seconds, update.seconds) };
    },
    ...wholeState(options, update.optimizer),
    async close() {
      await kv.close();
      update.optimizer.dispose();
    },
  };
}
