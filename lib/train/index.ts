/**
 * Data-parallel training with TensorFlow.js: `gradlink/tfjs`. Needs `@tensorflow/tfjs-core`, `@tensorflow/tfjs-layers`
 * and a backend.
 *
 * @packageDocumentation
 */
import { publish } from '../caller.js';
import * as entry from './index.js';

export { useBackend } from './backends.js';
export type { Backend, BackendOptions } from './backends.js';
export type { GpuShare } from '../launch/gpus.js';
export { backendNames, type BackendName } from './names.js';
export { broadcastOptimizerState, broadcastVariables } from './broadcast.js';
export type { BroadcastOptions } from './broadcast.js';
export { SyncBatchNormalization, type SyncBatchNormalizationArgs } from './batch-norm/layer.js';
export { convertSyncBatchNormalization, useSyncBatchNormalization } from './batch-norm/models.js';
export * from './buckets/index.js';
export { monotonicSeconds } from '../time.js';
export { completeCheckpoints } from './checkpoints/folder.js';
export { loadCheckpoint, type LoadedCheckpoint } from './checkpoints/load.js';
export { saveCheckpoint } from './checkpoints/save.js';
export type {
  Checkpoint,
  NamedArray,
  CheckpointRanks,
  SaveOptions,
  TrainingPlace,
} from './checkpoints/types.js';
export * from './data/index.js';
export { DistributedDataParallel } from './data-parallel.js';
export { DistributedOptimizer } from './distributed-optimizer.js';
export { registerGradientKernels } from './kernels/register.js';
export { KVStoreTrainer } from './kvstore-trainer.js';
export type { KVStoreTrainerOptions } from './kvstore-trainer.js';
export { buildModel, modelKinds, modelNames } from './models/index.js';
export type {
  LayerMaker,
  ModelKind,
  ModelName,
  ModelOptions,
  SampleShape,
  Tf,
} from './models/index.js';
export {
  Timeline,
  mergeTimelines,
  timelineLanes,
  type TimelineArgs,
  type TimelineLane,
  type TimelineOptions,
} from '../files/timeline.js';
export type {
  DataParallelOptions,
  DistributedOptimizerOptions,
  GradientOptions,
  Gradients,
  InnerOptimizer,
  JoinTrainingOptions,
  PassTimes,
  StepMachineNeighbors,
  StepNeighbors,
  Trainable,
  TrainableModel,
  TrainingAlgorithm,
} from './types.js';

publish(entry);
