// Methods that average weights instead of gradients.
import type { Scalar } from '@tensorflow/tfjs-core';

import { exponentialTwoGraph } from '../../topology/generators.js';
import { onePeerSchedule, uniformWeights } from '../../topology/schedules.js';
import { monotonicSeconds } from '../../train/clock.js';
import { DistributedOptimizer } from '../../train/distributed-optimizer.js';
import type { StepNeighbors, TrainingAlgorithm } from '../../train/types.js';
import { trainableVariables } from '../../train/variables.js';
import {
  gradientSizes,
  makeOptimizer,
  optimizerState,
  stepParts,
  setOptimizerState,
  take,
  timedUpdate,
  type MethodOptions,
} from './methods.js';
import type { TrainingMethod } from './method.js';
import type { TrainConfig } from './types.js';

/** What a name means; undefined where it is none of these methods. */
function algorithmOf(config: TrainConfig): TrainingAlgorithm | undefined {
  switch (config.distOptimizer) {
    case 'allreduce':
    case 'local_sgd':
      return 'local-sgd';
    case 'neighbor_allreduce':
      return config.adaptThenCombine ? 'adapt-then-combine' : 'adapt-with-combine';
    case 'hierarchical_neighbor_allreduce':
      return 'hierarchical';
    case 'win_put':
      return 'window-put';
    case 'adasum':
      return 'adasum';
    default:
      return undefined;
  }
}

/** One neighbour a step, over the exponential graph: each rank sends to one and receives from one. */
function onePeer(rank: number, size: number): (step: number) => StepNeighbors {
  const schedule = onePeerSchedule(exponentialTwoGraph(size), rank);
  return () => uniformWeights(schedule.next().value);
}

/** @returns undefined where `config.distOptimizer` names another kind of method. */
export async function weightMethod({
  model,
  communicator,
  config,
  timeline,
}: MethodOptions): Promise<TrainingMethod | undefined> {
  const algorithm = algorithmOf(config);
  if (algorithm === undefined) return undefined;
  const { rank, size } = communicator;
  const dynamic = config.distOptimizer === 'neighbor_allreduce' && config.dynamicTopology;
  const update = timedUpdate(makeOptimizer(config.optimizer, config.learningRate));
  const optimizer = new DistributedOptimizer(update.optimizer, communicator, {
    algorithm,
    timeline,
    ...(dynamic ? { neighbors: onePeer(rank, size) } : {}),
    ...(config.distOptimizer === 'allreduce' ? { stepsPerCommunication: 1 } : {}),
  });
  if (algorithm === 'hierarchical') await communicator.setMachineTopology();
  await optimizer.prepare(model);
  const variables = trainableVariables(model);
  return {
    ...gradientSizes(model),
    async step(loss: () => Scalar) {
      const start = monotonicSeconds();
      update.seconds = 0;
      const value = await optimizer.minimizeAsync(loss, true, variables);
      const seconds = monotonicSeconds() - start;
      return { loss: take(value!), parts: stepParts(optimizer.times!, seconds, update.seconds) };
    },
    state: () => optimizerState(update.optimizer),
    setState: (arrays) => setOptimizerState(update.optimizer, arrays),
    async close() {
      await optimizer.close();
      optimizer.dispose();
    },
  };
}
