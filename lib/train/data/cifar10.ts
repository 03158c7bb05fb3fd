// CIFAR-10 in binary format: records of a label and the red, green and blue planes of 32 by 32 pixels.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { GradlinkError } from '../../errors.js';
import { nonEmpty, oneOfWords } from '../../checks.js';
import type { Dataset } from './types.js';

const side = 32;
const plane = side * side;
const recordBytes = 1 + 3 * plane;
const classes = 10;
/** Channel means of the training images, in units of 255. */
const means = [0.4914, 0.4822, 0.4465] as const;
const deviations = [0.247, 0.2435, 0.2616] as const;

const files = {
  train: [1, 2, 3, 4, 5].map((number) => `data_batch_${number}.bin`),
  test: ['test_batch.bin'],
} as const;

const knownPart = oneOfWords(['train', 'test']);

/**
 * Reads the images of a folder, or of its subfolder `cifar-10-batches-bin`: the existing files of `data_batch_1.bin`
 * and so on, or `test_batch.bin`. Pixels are normalised to mean 0 and deviation 1.
 *
 * @throws GradlinkError ERR_SYSTEM if there is no such file, or one has partial records or a wrong label.
 */
export function cifar10(folder: string, part: 'train' | 'test' = 'train'): Dataset {
  nonEmpty(folder, 'folder');
  knownPart(part, 'part');
  const nested = join(folder, 'cifar-10-batches-bin');
  const where = existsSync(nested) ? nested : folder;
  const found = files[part].map((name) => join(where, name)).filter((path) => existsSync(path));
  if (found.length === 0) {
    throw new GradlinkError(
      'ERR_SYSTEM',
      `expected ${files[part].join(', ')} of CIFAR-10's binary version in ${folder}, got none of them`,
    );
  }
  const parts = found.map(readRecords);
  const data = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  return {
    name: part === 'train' ? 'cifar10' : 'cifar10 (test)',
    sampleShape: [side, side, 3],
    inputType: 'float32',
    classes,
    samples: data.length / recordBytes,
    read(index, into) {
      const start = index * recordBytes;
      for (let channel = 0; channel < 3; ++channel) {
        const from = start + 1 + channel * plane;
        const scale = 1 / (255 * deviations[channel]!);
        const shift = means[channel]! / deviations[channel]!;
        for (let pixel = 0; pixel < plane; ++pixel) {
          into[3 * pixel + channel] = data[from + pixel]! * scale - shift;
        }
      }
      return data[start]!;
    },
  };
}

function readRecords(path: string): Buffer {
  const data = readFileSync(path);
  if (data.length === 0 || data.length % recordBytes !== 0) {
    throw new GradlinkError(
      'ERR_SYSTEM',
      `expected records of ${recordBytes} bytes in ${path}, got ${data.length} bytes`,
    );
  }
  for (let start = 0; start < data.length; start += recordBytes) {
    const label = data[start]!;
    if (label >= classes) {
      const record = start / recordBytes;
      throw new GradlinkError(
        'ERR_SYSTEM',
        `expected labels below ${classes} in ${path}, got ${label} in record ${record}`,
      );
    }
  }
  return data;
}
