// What one option of a comparison of data parallelism is: something that takes steps, and the times of each.
import type { Communicator } from '../../communicator/communicator.js';
import type { BucketPlan, ReduceMode } from '../../train/buckets/types.js';
import type { Timeline } from '../../files/timeline.js';
import type { Filled } from '../../options/table.js';
import type { ddpTable } from './ddp-options.js';

/** Seconds of one step of one rank. */
export interface StepTimes {
  readonly forwardSeconds: number;
  /** From the end of the forward pass until all gradients are reduced. */
  readonly backwardSeconds: number;
}

/** Options that are compared with each other. */
export interface DdpOption {
  readonly mode: ReduceMode;
  /** Of all buckets but the first. */
  readonly bucketCapBytes: number;
  readonly firstBucketBytes: number;
  /** PythonDDP's buckets, of so many elements: closed before they overflow, in the order of the list. */
  readonly capacityElements?: number;
  readonly timeline?: Timeline | undefined;
}

/** One option, ready to run. */
export interface DdpTrainer {
  readonly plan: readonly BucketPlan[];
  /** What belongs to a step but not into its times; before all ranks begin it together. */
  prepare(): void;
  step(): Promise<StepTimes>;
  /** Seconds of the backward pass by itself, and of all collectives by themselves, one after the other. */
  alone(): Promise<{ readonly backwardSeconds: number; readonly communicationSeconds: number }>;
  /** Elements of the last step's gradients that are not what they should be; null where that is not known. */
  countWrong(): number | null;
}

/** A model of TensorFlow.js as what computes gradients. */
export interface ModelWorkloadOptions extends Pick<
  Filled<typeof ddpTable>,
  'model' | 'dataset' | 'batchSize' | 'backend' | 'allowCpu'
> {
  /** This worker's place, from 0. */
  readonly rank: number;
  /** How many workers there are. */
  readonly size: number;
}

/** What computes gradients. */
export interface DdpWorkload {
  /** `resnet50`. */
  readonly model: string;
  /** In words: what computes, and that it is synthetic where it is. */
  readonly description: string;
  readonly synthetic: boolean;
  readonly gradientBytes: number;
  readonly gradients: number;
  open(communicator: Communicator, option: DdpOption): DdpTrainer | Promise<DdpTrainer>;
}
