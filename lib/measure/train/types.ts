// What a training run is asked for, and what it tells.
import type { GpuShare } from '../../launch/gpus.js';
import type { Backend } from '../../train/backends.js';
import type { DatasetName } from '../../train/names.js';
import type { Filled } from '../../options/table.js';
import type { trainTable } from './train-options.js';
import type { UtilisationSummary } from '../machine/utilisation.js';

/** A run as every rank is told it. */
export interface TrainConfig extends Omit<Filled<typeof trainTable>, 'dataset' | 'placed'> {
  /** What is trained on. */
  readonly dataset: DatasetName;
}

/** The parts of a step in seconds, one after the other. What one method does not do is 0. */
export interface StepParts {
  /** Making the batch. */
  dataSeconds: number;
  /** Of the forward pass. */
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
  /** That trained. */
  readonly workers: number;
  /** Hosts that the workers run on. */
  readonly machines: number;
  /** Of TensorFlow.js. */
  readonly backend: string;
  /** What computed; GPU only where every rank had one. */
  readonly device: Backend['device'];
  /** The GPU that rank 0 was given; absent outside a job and without GPUs. */
  readonly gpu?: GpuShare | undefined;
  /** Of TensorFlow.js. */
  readonly tfjsVersion: string;
  /** With what was made up: `cifar10 (synthetic)`. */
  readonly datasetName: string;
  /** What rates count. */
  readonly sampleName: 'img' | 'sentence';
  /** Measured iterations of each rank: seconds, without those of checkpoints. */
  readonly iterationSeconds: readonly (readonly number[])[];
  /** Mean over all ranks' measured steps. */
  readonly parts: StepParts;
  /** Loss of each measured iteration's last step, mean over the ranks. */
  readonly losses: readonly number[];
  /** That a worker exchanges in a step. */
  readonly gradientBytes: number;
  /** That a worker exchanges in a step. */
  readonly gradientArrays: number;
  /** Elements of all weights that are trained. */
  readonly trainableParameters: number;
  /** Before the first that was timed. */
  readonly warmupSteps: number;
  /** The step that the run went on from; 0 for one from the start. */
  readonly resumedAt: number;
  /** All steps, those before included. */
  readonly steps: number;
  /** While it was measured, the mean over the machines. */
  readonly utilisation: UtilisationSummary;
}
