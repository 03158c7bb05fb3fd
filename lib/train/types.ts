// The types of data-parallel training.
import type { Scalar, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import type { Node, NodeWeights, RankWeights, Rank } from '../topology/rank.js';
import type { BucketHook, BucketHookName, ReducerOptions } from './buckets/types.js';
import type { Timeline } from '../files/timeline.js';

/** The variables to train: a `tf.LayersModel`, or a list. */
export type Trainable = TrainableModel | readonly Variable[];

/** The used members of `tf.LayersModel`. */
export interface TrainableModel {
  /** Variables with gradients. */
  readonly trainableWeights: readonly { read(): unknown }[];
  /** All variables, including untrained ones such as moving averages of batch normalisation. */
  readonly weights: readonly { read(): unknown }[];
}

/** Options of {@link DistributedDataParallel.create}; {@link ReducerOptions} has modes, buckets and compression. */
export interface DataParallelOptions extends ReducerOptions {
  /**
   * Whether ranks agree in each step on variables that no rank has used, which the optimizer then skips; costs one
   * small all-reduce. False: missing gradients count as zeros.
   */
  readonly findUnused?: boolean | undefined;
  /**
   * Whether a bucket's gradients are gathered on the device and transferred with one read and one write. True when
   * absent with a GPU backend, where each read waits for all earlier computing.
   */
  readonly gather?: boolean | undefined;
  /**
   * Whether ranks may run out of data at different times: such a rank calls {@link DistributedDataParallel.join}, and
   * averages only count ranks that make a pass. Costs one small all-gather per pass. The same on every rank.
   */
  readonly uneven?: boolean | undefined;
  /**
   * Whether each of n ranks reduces, updates and keeps the optimizer state of only an n-th of each bucket; new values
   * are then exchanged. Bit-equal for element-wise optimizers, as in `tf.train`. Applies to
   * {@link DistributedDataParallel.step}, not to {@link DistributedDataParallel.gradients}. Disables `rebuild`. The
   * same on every rank.
   */
  readonly shard?: boolean | undefined;
  /** Whether all ranks start from rank 0's values; true when absent. */
  readonly broadcast?: boolean | undefined;
  /** Records passes and bucket transfers. */
  readonly timeline?: Timeline | undefined;
}

/** Options of one backward pass. */
export interface GradientOptions {
  /**
   * Samples in this rank's batch, as weight of the rank, on all ranks or none: the result is then the gradient of the
   * mean over all samples. Equal weights when absent.
   */
  readonly samples?: number | undefined;
}

/** Options of {@link DistributedDataParallel.join}. */
export interface JoinTrainingOptions {
  /**
   * This rank's optimizer, which makes the others' steps, so that its state equals theirs. Without it only variables
   * follow, once all have joined. Required with `shard`.
   */
  readonly optimizer?: Pick<InnerOptimizer, 'applyGradients'> | undefined;
}

/** The result of a backward pass. */
export interface Gradients {
  /** This rank's loss; the caller disposes it. */
  readonly value: Scalar;
  /**
   * For each variable in order, the gradient averaged over the ranks, for `optimizer.applyGradients`; `tensor` is null
   * if no rank used the variable (see `findUnused`). The caller disposes them. Empty inside
   * {@link DistributedDataParallel.noSync}.
   */
  readonly gradients: NamedTensor[];
}

/** Times of one pass. */
export interface PassTimes {
  /** Seconds of the forward pass. */
  readonly forwardSeconds: number;
  /** Seconds from the end of the forward pass until all gradients are averaged. */
  readonly backwardSeconds: number;
  /** The part of `backwardSeconds` after the last gradient was computed: communication without overlap. */
  readonly waitSeconds: number;
  /** The part of `backwardSeconds` for copying gradients from the backend into buckets. */
  readonly copySeconds: number;
}

/** How {@link DistributedOptimizer} synchronises ranks. g: gradient, w: weights, C: the averaging. */
export type TrainingAlgorithm =
  /** `w ← w − step(C(g))` over all ranks. */
  | 'gradient-allreduce'
  /** `w ← C(w) − step(g)`. */
  | 'adapt-with-combine'
  /** `w ← C(w − step(g))`. */
  | 'adapt-then-combine'
  /** Adapt with combine, over neighbouring nodes. */
  | 'hierarchical'
  /** Local steps, then `w ← C(w)` over all ranks, every `stepsPerCommunication`. */
  | 'local-sgd'
  /** `w ← w + A(step)`, where A is Adasum per variable. */
  | 'adasum'
  /** A local step, put into the neighbors' windows and averaged with what has arrived, without waiting. */
  | 'window-put';

/** The neighbours of one averaging step, as for `neighborAllReduce`. */
export interface StepNeighbors {
  /** Weight of this rank's own array. */
  readonly selfWeight: number;
  /** Weight of each source's data. */
  readonly srcWeights: RankWeights;
  /** Factor of the data sent to each rank. */
  readonly dstWeights: RankWeights | readonly Rank[];
}

/** The nodes of one averaging step, as for `hierarchicalNeighborAllReduce`. */
export interface StepMachineNeighbors {
  /** Weight of this host's own mean. */
  readonly selfWeight: number;
  /** Weight of each source host's data. */
  readonly srcMachineWeights: NodeWeights;
  /** Factor of the data sent to each host. */
  readonly dstMachineWeights: NodeWeights | readonly Node[];
}

/** Options of {@link DistributedOptimizer}. */
export interface DistributedOptimizerOptions {
  /** `'gradient-allreduce'` when absent. */
  readonly algorithm?: TrainingAlgorithm | undefined;
  /** How gradients are combined in `'gradient-allreduce'`; `'avg'` when absent. */
  readonly op?: 'avg' | 'sum' | undefined;
  /** How gradients are compressed in `'gradient-allreduce'`. */
  readonly compression?: BucketHook | BucketHookName | undefined;
  /** Number of backward passes that accumulate before a step; 1 when absent. */
  readonly backwardPassesPerStep?: number | undefined;
  /** Number of buckets for the variables; by size (25 MiB, the first 1 MiB) when absent. */
  readonly groups?: number | undefined;
  /** Steps between averagings of weights; 1 when absent, 8 for `'local-sgd'`. */
  readonly stepsPerCommunication?: number | undefined;
  /**
   * The neighbors of a step of `'adapt-with-combine'` or `'adapt-then-combine'`, by the number of the averaging from 0;
   * the communicator's topology when absent.
   */
  readonly neighbors?: ((step: number) => StepNeighbors) | undefined;
  /** The same for nodes, for `'hierarchical'`; the topology of the communicator's `setMachineTopology` when absent. */
  readonly machineNeighbors?: ((step: number) => StepMachineNeighbors) | undefined;
  /** As in {@link DataParallelOptions}; averaged weights are all transferred at once. */
  readonly gather?: boolean | undefined;
  /** Records passes and bucket transfers. */
  readonly timeline?: Timeline | undefined;
  /** Milliseconds of each collective; the communicator's default when absent. */
  readonly timeoutMs?: number | undefined;
}

/** The used members of `tf.Optimizer`. */
export interface InnerOptimizer {
  /** Number of steps. */
  readonly iterations: number;
  /** Gradients of the loss that `f` returns. */
  computeGradients(
    f: () => Scalar,
    varList?: Variable[],
  ): {
    /** The loss. */ value: Scalar;
    /** By name of the variable. */ grads: Record<string, unknown>;
  };
  /** Makes a step. */
  applyGradients(gradients: NamedTensor[]): void;
  /** The state. */
  getWeights(): Promise<NamedTensor[]>;
  /** Restores the state from `getWeights`. */
  setWeights(weights: NamedTensor[]): Promise<void>;
  /** Frees its tensors. */
  dispose(): void;
}
