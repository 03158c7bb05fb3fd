// One option of a data-parallel comparison: makes steps and times them.
import type { Communicator } from '../../communicator/communicator.js';
import type { BucketPlan, ReduceMode } from '../../train/buckets/types.js';
import type { Timeline } from '../../files/timeline.js';
import type { Filled } from '../../options/table.js';
import type { ddpTable } from './ddp-options.js';

export interface StepTimes {
  readonly forwardSeconds: number;
  /** Until all gradients are reduced. */
  readonly backwardSeconds: number;
}

/** An option of a comparison. */
export interface DdpOption {
  readonly mode: ReduceMode;
  /** Of all buckets but the first. */
  readonly bucketCapBytes: number;
  readonly firstBucketBytes: number;
  /** PythonDDP's buckets of this many elements: closed before they overflow, in list order. */
  readonly capacityElements?: number;
  readonly timeline?: Timeline | undefined;
}

/** An option, ready to run. */
export interface DdpTrainer {
  readonly plan: readonly BucketPlan[];
  /** Untimed preparation of a step, before all ranks start it together. */
  prepare(): void;
  step(): Promise<StepTimes>;
  /** Seconds of the backward pass alone, and of all collectives alone. */
  alone(): Promise<{ readonly backwardSeconds: number; readonly communicationSeconds: number }>;
  /** Wrong elements of the last step's gradients; null if unknown. */
  countWrong(): number | null;
}

/** A TensorFlow.js model as the source of gradients. */
export interface ModelWorkloadOptions extends Pick<
  Filled<typeof ddpTable>,
  'model' | 'dataset' | 'batchSize' | 'backend' | 'allowCpu'
> {
  /** This worker's rank. */
  readonly rank: number;
  /** Number of workers. */
  readonly size: number;
}

/** A source of gradients. */
export interface DdpWorkload {
  /** `resnet50`. */
  readonly model: string;
  /** A description that tells whether it is synthetic. */
  readonly description: string;
  readonly synthetic: boolean;
  readonly gradientBytes: number;
  readonly gradients: number;
  open(communicator: Communicator, option: DdpOption): DdpTrainer | Promise<DdpTrainer>;
}
