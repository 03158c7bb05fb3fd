// The configuration and results of a training run.
import type { GpuShare } from '../../launch/gpus.js';
import type { Backend } from '../../train/backends.js';
import type { DatasetName } from '../../train/names.js';
import type { Filled } from '../../options/table.js';
import type { trainTable } from './train-options.js';
import type { UtilisationSummary } from '../machine/utilisation.js';

/** The configuration, the same on every rank. */
export interface TrainConfig extends Omit<Filled<typeof trainTable>, 'dataset' | 'placed'> {
  /** The data set. */
  readonly dataset: DatasetName;
}

/** The parts of a step in seconds; 0 for parts that a method lacks. */
export interface StepParts {
  /** Making the batch. */
  dataSeconds: number;
  /** The forward pass. */
  forwardSeconds: number;
  /** Computing gradients, with overlapping communication. */
  backwardSeconds: number;
  /** Copying gradients and weights between the backend and communication memory. */
  copySeconds: number;
  /** Communication without overlap. */
  exposedSeconds: number;
  /** Receiving weights from neighbours or a store. */
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

/** A run's results on rank 0. */
export interface TrainResult {
  /** Number of workers. */
  readonly workers: number;
  /** Number of hosts. */
  readonly machines: number;
  /** The TensorFlow.js backend. */
  readonly backend: string;
  /** The device; GPU only if every rank had one. */
  readonly device: Backend['device'];
  /** Rank 0's GPU; absent outside a job and without GPUs. */
  readonly gpu?: GpuShare | undefined;
  /** The version of TensorFlow.js. */
  readonly tfjsVersion: string;
  /** Tells synthetic data: `cifar10 (synthetic)`. */
  readonly datasetName: string;
  /** The name of a sample. */
  readonly sampleName: 'img' | 'sentence';
  /** Seconds of each rank's measured iterations, without checkpoints. */
  readonly iterationSeconds: readonly (readonly number[])[];
  /** Mean over all ranks' measured steps. */
  readonly parts: StepParts;
  /** Loss of each measured iteration's last step, mean over the ranks. */
  readonly losses: readonly number[];
  /** Bytes that a worker exchanges per step. */
  readonly gradientBytes: number;
  /** Arrays that a worker exchanges per step. */
  readonly gradientArrays: number;
  /** Elements of all trained weights. */
  readonly trainableParameters: number;
  /** Untimed steps first. */
  readonly warmupSteps: number;
  /** The step that the run resumed from; 0 for a new run. */
  readonly resumedAt: number;
  /** All steps, including earlier ones. */
  readonly steps: number;
  /** Mean over the machines during the measurement. */
  readonly utilisation: UtilisationSummary;
}
