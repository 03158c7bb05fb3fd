// Synthetic samples in the sizes of known data sets, with a pattern to learn.
import {
  anInteger,
  finiteNumber,
  integer,
  listOf,
  maxInt32,
  nonEmpty,
  optionNames,
  optionsObject,
} from '../../checks.js';
import { generator, mix, normals } from './random.js';
import { maxSamples } from './types.js';
import type { Dataset } from './types.js';

/** Options of synthetic samples. */
export interface SyntheticOptions {
  /** The same seed gives the same samples. 0 when absent. */
  readonly seed?: number | undefined;
  /** Number of samples. */
  readonly samples?: number | undefined;
  /** Labels are below this. */
  readonly classes?: number | undefined;
}

const syntheticNames = optionNames<SyntheticOptions>({
  seed: true,
  samples: true,
  classes: true,
});

const maxClasses = 2 ** 20;
const shapeKind = listOf(anInteger(1, maxSamples));

function checked(options: SyntheticOptions, ofClasses: number) {
  const { seed = 0, samples = 50_000, classes = ofClasses } = options;
  return {
    seed: finiteNumber(seed, 'seed'),
    samples: integer(samples, 'samples', 1, maxSamples),
    classes: integer(classes, 'classes', 1, maxClasses),
  };
}

const noiseLength = 1 << 16;

/**
 * Images: each class has a pattern, and each sample is its class's pattern with noise.
 *
 * @param sampleShape height, width, channels
 */
export function syntheticImages(
  name: string,
  sampleShape: readonly number[],
  options?: SyntheticOptions,
): Dataset {
  const given = optionsObject(options, syntheticNames, 'syntheticImages');
  const { seed, samples, classes } = checked(given, 10);
  nonEmpty(name, 'name');
  shapeKind(sampleShape, 'sampleShape');
  const elements = sampleShape.reduce((product, length) => product * length, 1);
  integer(elements, 'the elements of sampleShape', 1, maxSamples);
  // One noise table for all: generating each pixel would cost more than training a small network.
  const noise = normals(noiseLength, mix(seed, 1));
  const patternOf = Uint32Array.from({ length: classes }, (_, label) => mix(seed, 100 + label));
  return {
    name: `${name} (synthetic)`,
    sampleShape,
    classes,
    samples,
    inputType: 'float32',
    read(index, into) {
      const label = index % classes;
      const pattern = patternOf[label]!;
      const own = mix(seed ^ 0x5bd1e995, index);
      for (let i = 0; i < elements; ++i) {
        into[i] = noise[(i + pattern) % noiseLength]! + noise[(i + own) % noiseLength]!;
      }
      return label;
    },
  };
}

/** Token sequences: most tokens are from the class's part of the vocabulary. */
export function syntheticTokens(
  length: number,
  vocabulary: number,
  options?: SyntheticOptions,
): Dataset {
  const given = optionsObject(options, syntheticNames, 'syntheticTokens');
  const { seed, samples, classes } = checked(given, 2);
  integer(length, 'length', 1, maxSamples);
  integer(vocabulary, 'vocabulary', 1, maxInt32);
  const share = Math.max(1, Math.floor(vocabulary / classes));
  return {
    name: 'tokens (synthetic)',
    sampleShape: [length],
    classes,
    samples,
    vocabulary,
    inputType: 'int32',
    read(index, into) {
      const label = index % classes;
      const next = generator(mix(seed, index));
      for (let i = 0; i < length; ++i) {
        const own = next() % 4 !== 0;
        into[i] = own ? (label * share + (next() % share)) % vocabulary : next() % vocabulary;
      }
      return label;
    },
  };
}
