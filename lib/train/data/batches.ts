// Distributes a data set over ranks, step by step.
import { argumentError } from '../../errors.js';
import {
  aFunction,
  anInteger,
  finiteNumber,
  having,
  integer,
  listOf,
  optionNames,
  optionsObject,
} from '../../checks.js';
import { mix, permutation } from './random.js';
import { maxSamples } from './types.js';
import type { Batch, Dataset } from './types.js';

/** Options of {@link Batches}. */
export interface BatchesOptions {
  /** Batch size per rank. */
  readonly batchSize: number;
  /** This worker's rank; default 0. */
  readonly rank?: number | undefined;
  /** Number of workers that share the samples; default 1. */
  readonly size?: number | undefined;
  /** Seed of the order, which differs in each epoch. 0 when absent. */
  readonly seed?: number | undefined;
}

const batchesNames = optionNames<BatchesOptions>({
  batchSize: true,
  rank: true,
  size: true,
  seed: true,
});

/** The maximum size of a communicator. */
const maxRanks = 2 ** 16;
const datasetKind = having({
  samples: anInteger(1, maxSamples),
  sampleShape: listOf(anInteger(1, maxSamples)),
  read: aFunction,
});

/**
 * Distributes a data set over ranks. All ranks use the same order with adjacent batches: n ranks with batch b together
 * see the batch n b of a single rank. Samples left at the end of an epoch are dropped.
 *
 * The position counts samples of all ranks, so that a run can resume with another number of ranks.
 */
export class Batches {
  /** Samples of all workers per step. */
  readonly samplesPerStep: number;
  readonly #dataset: Dataset;
  readonly #batchSize: number;
  readonly #rank: number;
  readonly #seed: number;
  readonly #elements: number;
  #epoch = -1;
  #order: Uint32Array = new Uint32Array(0);

  /** @throws TypeError if the batches of all ranks exceed the data set */
  constructor(dataset: Dataset, options: BatchesOptions) {
    const given = optionsObject(options, batchesNames, 'Batches');
    const { rank = 0, size = 1, seed = 0 } = given;
    datasetKind(dataset, 'dataset');
    integer(size, 'size', 1, maxRanks);
    finiteNumber(seed, 'seed');
    this.#dataset = dataset;
    this.#batchSize = integer(given.batchSize, 'batchSize', 1, dataset.samples);
    this.#rank = integer(rank, 'rank', 0, size - 1);
    this.#seed = seed;
    this.#elements = dataset.sampleShape.reduce((product, length) => product * length, 1);
    this.samplesPerStep = this.#batchSize * size;
    if (this.samplesPerStep > dataset.samples) {
      const expected = `at most ${dataset.samples} samples for all ${size} ranks`;
      const got = { text: String(this.samplesPerStep) };
      throw argumentError('ERR_INVALID_ARG_VALUE', 'batchSize', expected, got);
    }
  }

  /** This rank's batch of the step after this many samples of all ranks. */
  at(samplesSeen: number): Batch {
    integer(samplesSeen, 'samplesSeen', 0, Number.MAX_SAFE_INTEGER);
    const { samples, inputType } = this.#dataset;
    const perEpoch = samples - (samples % this.samplesPerStep);
    const epoch = Math.floor(samplesSeen / perEpoch);
    // After a change of size the position may not be a multiple of a step, and the rest of the epoch may be too short.
    const place = Math.min(samplesSeen % perEpoch, samples - this.samplesPerStep);
    if (epoch !== this.#epoch) {
      this.#order = permutation(samples, mix(this.#seed, epoch));
      this.#epoch = epoch;
    }
    const begin = place + this.#rank * this.#batchSize;
    const indices = this.#order.slice(begin, begin + this.#batchSize);
    const length = this.#batchSize * this.#elements;
    const inputs = inputType === 'int32' ? new Int32Array(length) : new Float32Array(length);
    const labels = Int32Array.from(indices, (index, i) => {
      const into = inputs.subarray(i * this.#elements, (i + 1) * this.#elements);
      return this.#dataset.read(index, into);
    });
    return { inputs, labels, indices };
  }
}
