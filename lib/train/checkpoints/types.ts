// The types of checkpoints.

/** A named array of a model or an optimizer. */
export interface NamedArray {
  /** Unique in its checkpoint. */
  readonly name: string;
  /** Dimensions, row-major. */
  readonly shape: readonly number[];
  /** The elements. */
  readonly data: Float32Array | Int32Array;
}

/** The position of a run. */
export interface TrainingPlace {
  /** Steps taken. */
  readonly step: number;
  /** Samples of all ranks. */
  readonly samplesSeen: number;
  /** Must match to resume, for example the model's name. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A complete checkpoint. */
export interface Checkpoint extends TrainingPlace {
  /** Its own folder. */
  readonly folder: string;
  /** Number of ranks that wrote it. */
  readonly size: number;
}

/** The members of a communicator that checkpoints need. */
export interface CheckpointRanks {
  /** This worker's rank. */
  readonly rank: number;
  /** Number of workers. */
  readonly size: number;
  /** Sums `data` over the ranks in place. */
  allReduce(data: Float64Array): Promise<unknown>;
  /** Copies rank 0's `data` to all. */
  broadcast(data: Float64Array): Promise<unknown>;
}

/** Options of {@link saveCheckpoint}. */
export interface SaveOptions {
  /** Number of complete checkpoints to keep; at least 1, 2 when absent. */
  readonly keep?: number | undefined;
}
