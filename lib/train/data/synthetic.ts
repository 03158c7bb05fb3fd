// Samples that are made up: as large as those of known data sets, and with something in them to learn.
import { optionNames, optionsObject } from '../../validate.js';
import { generator, mix, normals } from './random.js';
import type { Dataset } from './types.js';

export interface SyntheticOptions {
  /** The same seed gives the same samples. 0 when absent. */
  readonly seed?: number | undefined;
  readonly samples?: number | undefined;
  readonly classes?: number | undefined;
}

const syntheticNames = optionNames<SyntheticOptions>({
  seed: true,
  samples: true,
  classes: true,
});

const noiseLength = 1 << 16;

/**
 * Images: each class has a pattern, each sample is that of its class under as much noise.
 *
 * @param sampleShape height, width, channels
 */
export function syntheticImages(
  name: string,
  sampleShape: readonly number[],
  options?: SyntheticOptions,
): Dataset {
  const given = optionsObject(options, syntheticNames, 'syntheticImages');
  const { seed = 0, samples = 50_000, classes = 10 } = given;
  const elements = sampleShape.reduce((product, length) => product * length, 1);
  // One table for all: making up each pixel would cost more than small networks take to learn from it.
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

/** Sequences of tokens; most tokens of a sequence are from its class's part of the vocabulary. */
export function syntheticTokens(
  length: number,
  vocabulary: number,
  options?: SyntheticOptions,
): Dataset {
  const given = optionsObject(options, syntheticNames, 'syntheticTokens');
  const { seed = 0, samples = 50_000, classes = 2 } = given;
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
