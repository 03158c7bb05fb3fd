// What takes the steps of a training run. Names types of TensorFlow.js, which what a run is asked for does not.
import type { Scalar } from '@tensorflow/tfjs-core';

import type { NamedArray } from '../../train/checkpoints/types.js';
import type { StepParts } from './types.js';

/** Trains: one step after the other, each made by every rank. */
export interface TrainingMethod {
  /** Bytes of all gradients. */
  readonly gradientBytes: number;
  readonly gradientArrays: number;
  /**
   * @param loss the mean over this rank's batch
   * @returns the loss before the step
   */
  step(loss: () => Scalar): Promise<{ readonly loss: number; readonly parts: Partial<StepParts> }>;
  /** What the optimizer keeps; the model's own weights are not among it. */
  state(): Promise<NamedArray[]>;
  setState(arrays: readonly NamedArray[]): Promise<void>;
  close(): Promise<void>;
}
