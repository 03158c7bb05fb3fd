// What a model is trained on.

/** The most samples of a data set, whose order is held in memory: 512 MiB; and the most elements of a sample. */
export const maxSamples = 2 ** 27;

/** Samples that can be read in any order. */
export interface Dataset {
  /** `cifar10 (synthetic)`: as reports show it. */
  readonly name: string;
  /** Without the batch: height, width, channels; or the length of a sequence. */
  readonly sampleShape: readonly number[];
  /** int32: tokens. */
  readonly inputType: 'float32' | 'int32';
  /** Of tokens: each is below it. */
  readonly vocabulary?: number;
  /** Labels are below this. */
  readonly classes: number;
  /** How many there are. */
  readonly samples: number;
  /**
   * Writes a sample.
   *
   * @param index 0 to samples - 1
   * @param into as many elements as a sample has
   * @returns its label, 0 to classes - 1
   */
  read(index: number, into: SampleArray): number;
}

/** Pixels, or tokens. */
export type SampleArray = Float32Array | Int32Array;

/** A batch of one rank. */
export interface Batch {
  /** Samples one after the other, in row-major order. */
  readonly inputs: SampleArray;
  /** A class for each sample. */
  readonly labels: Int32Array;
  /** Which samples they are. */
  readonly indices: Uint32Array;
}
