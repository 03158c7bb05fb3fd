// The types of data sets.

/** Maximum samples of a data set, whose order takes 512 MiB, and maximum elements of a sample. */
export const maxSamples = 2 ** 27;

/** Samples with random access. */
export interface Dataset {
  /** The name in reports, such as `cifar10 (synthetic)`. */
  readonly name: string;
  /** Without the batch: height, width, channels; or a sequence length. */
  readonly sampleShape: readonly number[];
  /** int32 for tokens. */
  readonly inputType: 'float32' | 'int32';
  /** Tokens are below this. */
  readonly vocabulary?: number;
  /** Labels are below this. */
  readonly classes: number;
  /** Number of samples. */
  readonly samples: number;
  /**
   * Reads a sample into an array.
   *
   * @param index 0 to samples - 1
   * @param into array of a sample's size
   * @returns its label, 0 to classes - 1
   */
  read(index: number, into: SampleArray): number;
}

/** Pixels or tokens. */
export type SampleArray = Float32Array | Int32Array;

/** A batch of one rank. */
export interface Batch {
  /** Samples, concatenated in row-major order. */
  readonly inputs: SampleArray;
  /** The class of each sample. */
  readonly labels: Int32Array;
  /** Indices of the samples. */
  readonly indices: Uint32Array;
}
