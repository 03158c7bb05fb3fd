// What data-parallel training takes and gives.
import type { Scalar, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import type { Node, NodeWeights, RankWeights, Rank } from '../topology/rank.js';
import type { BucketHook, BucketHookName, ReducerOptions } from './buckets/types.js';
import type { Timeline } from '../files/timeline.js';

/** What holds the variables to train: a `tf.LayersModel`, or a list of variables. */
export type Trainable = TrainableModel | readonly Variable[];

/** What is used of a `tf.LayersModel`. */
export interface TrainableModel {
  /** Those that gradients are for. */
  readonly trainableWeights: readonly { read(): unknown }[];
  /** Also those that are not trained, such as the moving averages of batch normalisation. */
  readonly weights: readonly { read(): unknown }[];
}

/**
 * Options of {@link DistributedDataParallel.create}; see {@link ReducerOptions} for the modes, the buckets and the hooks
 * that compress what travels.
 */
export interface DataParallelOptions extends ReducerOptions {
  /**
   * Whether the ranks agree in each step on the variables that no rank has used, which then have no gradient and are
   * left alone by the optimizer; costs one small all-reduce. False: a variable without gradient counts as zeros.
   */
  readonly findUnused?: boolean | undefined;
  /**
   * Whether the gradients of a bucket are gathered on the device, read with one call and given back with one; else each
   * crosses by itself. True when absent where the backend computes on a GPU, where each read waits for all computing
   * before it.
   */
  readonly gather?: boolean | undefined;
  /**
   * Whether ranks may run out of data at different times: one that has no more calls {@link DistributedDataParallel.join},
   * and only those that make a pass count in its average. Costs one small all-gather a pass. The same on every rank.
   */
  readonly uneven?: boolean | undefined;
  /**
   * Whether each of n ranks gets, steps and keeps the optimizer's state of an n-th of each bucket alone; the new values then
   * go to all. The same bits as without, for optimizers that step element by element, as those of `tf.train` do. Of
   * {@link DistributedDataParallel.step}; {@link DistributedDataParallel.gradients} stays as it is. Buckets are not dealt out
   * anew (`rebuild`). The same on every rank.
   */
  readonly shard?: boolean | undefined;
  /** Whether all ranks start from rank 0's values; true when absent. */
  readonly broadcast?: boolean | undefined;
  /** Told when the passes ran and when buckets travelled. */
  readonly timeline?: Timeline | undefined;
}

/** Options of one backward pass. */
export interface GradientOptions {
  /**
   * Samples in this rank's batch, on all ranks or on none: ranks count by their samples, so that the result is the
   * gradient of the mean over all samples. Without it all ranks count the same.
   */
  readonly samples?: number | undefined;
}

/** Options of {@link DistributedDataParallel.join}. */
export interface JoinTrainingOptions {
  /**
   * This rank's own: it makes the steps of the others, so that its state is theirs afterwards. Without it variables alone
   * follow, once all have joined. With `shard` it is needed.
   */
  readonly optimizer?: Pick<InnerOptimizer, 'applyGradients'> | undefined;
}

/** What a backward pass gave. */
export interface Gradients {
  /** This rank's own loss; the caller disposes it. */
  readonly value: Scalar;
  /**
   * For each variable, in their order, the gradient averaged over the ranks, for `optimizer.applyGradients`; `tensor`
   * is null where no rank used the variable (see `findUnused`). The caller disposes them. Empty inside
   * {@link DistributedDataParallel.noSync}.
   */
  readonly gradients: NamedTensor[];
}

/** Seconds of one pass. */
export interface PassTimes {
  /** Of the forward pass. */
  readonly forwardSeconds: number;
  /** From the end of the forward pass until all gradients are averaged. */
  readonly backwardSeconds: number;
  /** The part of `backwardSeconds` after the last gradient was computed: communication that nothing hid. */
  readonly waitSeconds: number;
  /** The part of `backwardSeconds` that went into reading gradients from the backend and into their buckets. */
  readonly copySeconds: number;
}

/** How {@link DistributedOptimizer} keeps ranks together. g: gradient, w: weights, C: the averaging. */
export type TrainingAlgorithm =
  /** `w ← w − step(C(g))` over all ranks. */
  | 'gradient-allreduce'
  /** `w ← C(w) − step(g)`. */
  | 'adapt-with-combine'
  /** `w ← C(w − step(g))`. */
  | 'adapt-then-combine'
  /** Adapt with combine, over the neighbours of the node. */
  | 'hierarchical'
  /** Local steps, then `w ← C(w)` over all ranks, every `stepsPerCommunication`. */
  | 'local-sgd'
  /** `w ← w + A(step)`, where A is Adasum of each variable. */
  | 'adasum'
  /** A local step, which is put where the neighbours find it, averaged with what has come; nobody waits. */
  | 'window-put';

/** Whom one step averages with, as `neighborAllReduce` has it. */
export interface StepNeighbors {
  /** Of this rank's own array. */
  readonly selfWeight: number;
  /** Of what each source sends. */
  readonly srcWeights: RankWeights;
  /** By which what is sent is scaled. */
  readonly dstWeights: RankWeights | readonly Rank[];
}

/** Which nodes one step averages with, as `hierarchicalNeighborAllReduce` has it. */
export interface StepMachineNeighbors {
  /** Of this host's own mean. */
  readonly selfWeight: number;
  /** Of what each host sends. */
  readonly srcMachineWeights: NodeWeights;
  /** By which what is sent is scaled. */
  readonly dstMachineWeights: NodeWeights | readonly Node[];
}

/** Options of {@link DistributedOptimizer}. */
export interface DistributedOptimizerOptions {
  /** `'gradient-allreduce'` when absent. */
  readonly algorithm?: TrainingAlgorithm | undefined;
  /** How gradients are combined in `'gradient-allreduce'`; `'avg'` when absent. */
  readonly op?: 'avg' | 'sum' | undefined;
  /** How gradients travel in `'gradient-allreduce'`. */
  readonly compression?: BucketHook | BucketHookName | undefined;
  /** Gradients of so many backward passes are added up before a step; 1 when absent. */
  readonly backwardPassesPerStep?: number | undefined;
  /** How many buckets the variables are dealt into; by size (25 MiB, the first 1 MiB) when absent. */
  readonly groups?: number | undefined;
  /** Steps from one averaging of weights to the next; 1 when absent, 8 for `'local-sgd'`. */
  readonly stepsPerCommunication?: number | undefined;
  /**
   * Whom a step of `'adapt-with-combine'` or `'adapt-then-combine'` averages with, by the number of the averaging from 0; the
   * communicator's topology when absent.
   */
  readonly neighbors?: ((step: number) => StepNeighbors) | undefined;
  /** The same of nodes, for `'hierarchical'`; the topology that `setMachineTopology` of the communicator set when absent. */
  readonly machineNeighbors?: ((step: number) => StepMachineNeighbors) | undefined;
  /** As in {@link DataParallelOptions}; where weights are averaged, all of them cross at once. */
  readonly gather?: boolean | undefined;
  /** Told when the passes ran and when buckets travelled. */
  readonly timeline?: Timeline | undefined;
  /** Of each collective, in milliseconds; the communicator's own when absent. */
  readonly timeoutMs?: number | undefined;
}

/** The part of `tf.Optimizer` that is used. */
export interface InnerOptimizer {
  /** Steps that it has made. */
  readonly iterations: number;
  /** Of the loss that `f` returns. */
  computeGradients(
    f: () => Scalar,
    varList?: Variable[],
  ): {
    /** The loss. */ value: Scalar;
    /** By name of the variable. */ grads: Record<string, unknown>;
  };
  /** Makes a step. */
  applyGradients(gradients: NamedTensor[]): void;
  /** Its state. */
  getWeights(): Promise<NamedTensor[]>;
  /** Takes what `getWeights` gave. */
  setWeights(weights: NamedTensor[]): Promise<void>;
  /** Gives its tensors back. */
  dispose(): void;
}
