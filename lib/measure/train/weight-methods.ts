// Methods that average weights instead of gradients.
import type { Scalar } from '@tensorflow/tfjs-core';

import type { Communicator } from '../../communicator/communicator.js';
import { exponentialTwoGraph } from '../../topology/generators.js';
import type { Node } from '../../topology/rank.js';
import {
  exponentialMachineSchedule,
  innerOuterExponentialSchedule,
  onePeerSchedule,
  uniformWeights,
} from '../../topology/schedules.js';
import { monotonicSeconds } from '../../time.js';
import { DistributedOptimizer } from '../../train/distributed-optimizer.js';
import type { StepMachineNeighbors, StepNeighbors, TrainingAlgorithm } from '../../train/types.js';
import { trainableVariables } from '../../train/variables.js';
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

/** The algorithm of a name; undefined for other methods. */
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

/** One neighbour per step on the exponential graph: each rank sends to one and receives from one. */
function onePeer(rank: number, size: number): (step: number) => StepNeighbors {
  const schedule = onePeerSchedule(exponentialTwoGraph(size), rank);
  return () => uniformWeights(schedule.next().value);
}

/**
 * BlueFog's choice: over several hosts one rank of each exchanges outside, the others inside; otherwise one neighbour
 * per step.
 */
export async function dynamicNeighbors(
  communicator: Communicator,
): Promise<(step: number) => StepNeighbors> {
  const { rank, size } = communicator;
  const several = (await communicator.isHomogeneous()) && communicator.machineSize > 1;
  // With two ranks per node, nothing would pass between them.
  if (!several || communicator.localSize < 3) return onePeer(rank, size);
  const place = { size, ranksPerNode: communicator.localSize, rank };
  const schedule = innerOuterExponentialSchedule(place);
  return () => uniformWeights(schedule.next().value);
}

/** One node per step on the exponential graph of nodes. */
export function oneMachine({
  rank,
  size,
  localSize,
}: Communicator): (step: number) => StepMachineNeighbors {
  const schedule = exponentialMachineSchedule({ size, ranksPerNode: localSize, rank });
  return () => {
    const { selfWeight, srcWeights, dstWeights } = uniformWeights<Node>(schedule.next().value);
    return { selfWeight, srcMachineWeights: srcWeights, dstMachineWeights: dstWeights };
  };
}

/** @returns undefined if `config.distOptimizer` names another kind of method */
export async function weightMethod(options: MethodOptions): Promise<TrainingMethod | undefined> {
  const { model, communicator, config, timeline } = options;
  const algorithm = algorithmOf(config);
  if (algorithm === undefined) return undefined;
  if (algorithm === 'hierarchical') await communicator.setMachineTopology();
  const { distOptimizer, dynamicTopology } = config;
  const overRanks = dynamicTopology && distOptimizer === 'neighbor_allreduce';
  const overNodes = dynamicTopology && algorithm === 'hierarchical';
  const update = timedUpdate(makeOptimizer(config.optimizer, config.learningRate));
  const optimizer = new DistributedOptimizer(update.optimizer, communicator, {
    algorithm,
    timeline,
    ...(overRanks ? { neighbors: await dynamicNeighbors(communicator) } : {}),
    ...(overNodes ? { machineNeighbors: oneMachine(communicator) } : {}),
    ...(config.distOptimizer === 'allreduce' ? { stepsPerCommunication: 1 } : {}),
  });
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
    ...wholeState(options, update.optimizer),
    async close() {
      await optimizer.close();
      optimizer.dispose();
    },
  };
}
