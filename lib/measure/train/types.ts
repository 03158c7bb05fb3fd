// What a training run is asked for, and what it tells.
import type { GpuShare } from '../../launch/gpus.js';
import type { Backend } from '../../train/backends.js';
import type { BucketHookName, ReduceMode } from '../../train/buckets/types.js';
import type { BackendName, DatasetName, ModelName } from '../../train/names.js';
import type { UtilisationSummary } from '../machine/utilisation.js';

/** Optimizers of TensorFlow.js that a training run can have. */
export const trainOptimizers = ['sgd', 'momentum', 'adam'] as const;
/** One of {@link trainOptimizers}. */
export type TrainOptimizer = (typeof trainOptimizers)[number];

/** How ranks are kept together: BlueFog's names, further algorithms, and key-value stores as `kv:TYPE`. */
export const distOptimizers = [
  'gradient_allreduce',
  'allreduce',
  'neighbor_allreduce',
  'hierarchical_neighbor_allreduce',
  'win_put',
  'local_sgd',
  'adasum',
] as const;
/** One of {@link distOptimizers}, or a store. */
export type DistOptimizer = (typeof distOptimizers)[number] | `kv:${string}`;

/** A run as every rank is told it. */
export interface TrainConfig {
  readonly model: ModelName;
  readonly dataset: DatasetName;
  readonly dataFolder?: string | undefined;
  readonly imageSize?: number | undefined;
  readonly sequenceLength?: number | undefined;
  readonly vocabulary?: number | undefined;
  readonly classes?: number | undefined;
  /** Of one rank. */
  readonly batchSize: number;
  /** Steps that are not measured. */
  readonly warmupSteps: number;
  /** Measured. */
  readonly iterations: number;
  readonly stepsPerIteration: number;
  readonly optimizer: TrainOptimizer;
  readonly learningRate: number;
  readonly distOptimizer: DistOptimizer;
  /** With gradient_allreduce. */
  readonly mode: ReduceMode;
  readonly hook?: BucketHookName | undefined;
  readonly bucketCapBytes?: number | undefined;
  /** Of neighbor_allreduce: a neighbour a step, instead of the graph's all. */
  readonly dynamicTopology: boolean;
  /** Adapt, then combine, instead of both side by side. */
  readonly adaptThenCombine: boolean;
  readonly seed: number;
  readonly backend?: BackendName | undefined;
  /** Whether `'node-gpu'` may compute on the CPU where there is no GPU. */
  readonly allowCpu?: boolean | undefined;
  /** Each rank adds its number to the file's name. */
  readonly timeline?: string | undefined;
  readonly checkpointFolder?: string | undefined;
  /** Steps from one checkpoint to the next. */
  readonly checkpointEvery: number;
}

/** The parts of a step in seconds, one after the other. What one method does not do is 0. */
export interface StepParts {
  /** Making the batch. */
  dataSeconds: number;
  forwardSeconds: number;
  /** Computing gradients, with what communication runs beside it. */
  backwardSeconds: number;
  /** Gradients and weights between the backend and the memory that travels: from device to host and back. */
  copySeconds: number;
  /** Communication that nothing hid. */
  exposedSeconds: number;
  /** Getting weights: from neighbours, or from a store. */
  modelSeconds: number;
  /** The optimizer. */
  updateSeconds: number;
}

export const partNames = [
  'dataSeconds',
  'forwardSeconds',
  'backwardSeconds',
  'copySeconds',
  'exposedSeconds',
  'modelSeconds',
  'updateSeconds',
] as const satisfies readonly (keyof StepParts)[];

/** What rank 0 knows after a run. */
export interface TrainResult {
  readonly workers: number;
  /** Hosts that the workers run on. */
  readonly machines: number;
  readonly backend: string;
  /** What computed; GPU only where every rank had one. */
  readonly device: Backend['device'];
  /** The GPU that rank 0 was given; absent outside a job and without GPUs. */
  readonly gpu?: GpuShare | undefined;
  readonly tfjsVersion: string;
  readonly datasetName: string;
  readonly sampleName: 'img' | 'sentence';
  /** Measured iterations of each rank: seconds, without those of checkpoints. */
  readonly iterationSeconds: readonly (readonly number[])[];
  /** Mean over all ranks' measured steps. */
  readonly parts: StepParts;
  /** Loss of each measured iteration's last step, mean over the ranks. */
  readonly losses: readonly number[];
  readonly gradientBytes: number;
  readonly gradientArrays: number;
  readonly trainableParameters: number;
  readonly warmupSteps: number;
  /** The step that the run went on from; 0 for one from the start. */
  readonly resumedAt: number;
  /** All steps, those before included. */
  readonly steps: number;
  /** While it was measured, the mean over the machines. */
  readonly utilisation: UtilisationSummary;
}
