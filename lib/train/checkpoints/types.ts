// What a checkpoint is to those who save and load one.

/** An array with its place in a model or an optimizer. */
export interface NamedArray {
  /** Unique in its checkpoint. */
  readonly name: string;
  /** Row-major. */
  readonly shape: readonly number[];
  /** Its elements. */
  readonly data: Float32Array | Int32Array;
}

/** Where a run is. */
export interface TrainingPlace {
  /** Steps taken. */
  readonly step: number;
  /** By all ranks together. */
  readonly samplesSeen: number;
  /** What the run must be like to go on from here, the name of the model for example. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A checkpoint that all ranks have written their part of. */
export interface Checkpoint extends TrainingPlace {
  /** Its own folder. */
  readonly folder: string;
  /** Ranks that wrote it. */
  readonly size: number;
}

/** Of the communicator of the ranks: what a checkpoint needs. */
export interface CheckpointRanks {
  /** This worker's place, from 0. */
  readonly rank: number;
  /** How many workers there are. */
  readonly size: number;
  /** Leaves the sum over the ranks in `data`. */
  allReduce(data: Float64Array): Promise<unknown>;
  /** Leaves what rank 0 has in `data`. */
  broadcast(data: Float64Array): Promise<unknown>;
}

/** Options of {@link saveCheckpoint}. */
export interface SaveOptions {
  /** Complete checkpoints that stay; at least 1, 2 when absent. */
  readonly keep?: number | undefined;
}
