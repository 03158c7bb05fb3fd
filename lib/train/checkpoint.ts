// What a run leaves behind from time to time, so that another can go on from there, with another number of ranks too.
export { completeCheckpoints } from './checkpoints/folder.js';
export { loadCheckpoint, type LoadedCheckpoint } from './checkpoints/load.js';
export { saveCheckpoint } from './checkpoints/save.js';
export type {
  Checkpoint,
  CheckpointRanks,
  NamedArray,
  SaveOptions,
  TrainingPlace,
} from './checkpoints/types.js';
