// Data sets for training.
import { oneOfWords, optionNames, optionsObject } from '../../checks.js';
import { datasetNames, type DatasetName } from '../names.js';
import { cifar10 } from './cifar10.js';
import { syntheticImages, syntheticTokens, type SyntheticOptions } from './synthetic.js';
import type { Dataset } from './types.js';

export { datasetNames, type DatasetName } from '../names.js';
export { Batches, type BatchesOptions } from './batches.js';
export { cifar10 } from './cifar10.js';
export { syntheticImages, syntheticTokens, type SyntheticOptions } from './synthetic.js';
export type { Batch, Dataset, SampleArray } from './types.js';

/** Options of {@link openDataset}. */
export interface DatasetOptions extends SyntheticOptions {
  /** The folder with CIFAR-10's binary files; synthetic samples of the same shape when absent. */
  readonly folder?: string | undefined;
  /** Height and width of images, instead of the data set's own. Synthetic samples only. */
  readonly imageSize?: number | undefined;
  /** Length of token sequences. 128 when absent. */
  readonly length?: number | undefined;
  /** Number of different tokens. 30,522 when absent. */
  readonly vocabulary?: number | undefined;
}

const datasetOptions = optionNames<DatasetOptions>({
  seed: true,
  samples: true,
  classes: true,
  folder: true,
  imageSize: true,
  length: true,
  vocabulary: true,
});

/** Sides, channels, classes and samples of the imitated data sets. */
const shapes = {
  cifar10: [32, 3, 10, 50_000],
  imagenet: [224, 3, 1000, 1_281_167],
  mnist: [28, 1, 10, 60_000],
} as const;

const knownSet = oneOfWords(datasetNames);

/** CIFAR-10 from its files, or synthetic samples in the shape of a known data set. */
export function openDataset(name: DatasetName, options?: DatasetOptions): Dataset {
  const given = optionsObject(options, datasetOptions, 'openDataset');
  knownSet(name, 'name');
  const { seed } = given;
  if (name === 'cifar10' && given.folder !== undefined) return cifar10(given.folder);
  if (name === 'tokens') {
    const { samples, classes, length = 128, vocabulary = 30_522 } = given;
    return syntheticTokens(length, vocabulary, { seed, samples, classes });
  }
  const [side, channels, classes, samples] = shapes[name];
  const size = given.imageSize ?? side;
  return syntheticImages(name, [size, size, channels], {
    seed,
    samples: given.samples ?? samples,
    classes: given.classes ?? classes,
  });
}
