// The steps of a training run. Uses TensorFlow.js types, which the options avoid.
import type { Scalar } from '@tensorflow/tfjs-core';

import type { NamedArray } from '../../train/checkpoints/types.js';
import type { StepParts } from './types.js';

/** Makes steps, each together with all ranks. */
export interface TrainingMethod {
  /** Bytes of all gradients. */
  readonly gradientBytes: number;
  readonly gradientArrays: number;
  /**
   * @param loss mean over this rank's batch
   * @returns the loss before the step
   */
  step(loss: () => Scalar): Promise<{ readonly loss: number; readonly parts: Partial<StepParts> }>;
  /** The optimizer's state, without the model's weights. */
  state(): Promise<NamedArray[]>;
  setState(arrays: readonly NamedArray[]): Promise<void>;
  close(): Promise<void>;
}
