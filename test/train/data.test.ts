import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { Batches, cifar10, openDataset, syntheticImages } from '../../lib/train/data/index.js';
import { folderOfAllTests } from '../support/folders.js';

let scratch = '';
folderOfAllTests((made) => (scratch = made));

/** Image i has label i mod 10, red i, green 100 + i, blue 200 everywhere but in its last pixel, which is black. */
function records(count: number, first = 0): Buffer {
  const data = Buffer.alloc(count * 3073);
  for (let i = 0; i < count; ++i) {
    const record = data.subarray(i * 3073, (i + 1) * 3073);
    record[0] = (first + i) % 10;
    for (const [channel, value] of [first + i, 100 + first + i, 200].entries()) {
      record.fill(value, 1 + channel * 1024, 1 + channel * 1024 + 1023);
    }
  }
  return data;
}

describe('cifar10', () => {
  it('reads planes of all files as pixels of mean 0', () => {
    const folder = join(scratch, 'nested');
    mkdirSync(join(folder, 'cifar-10-batches-bin'), { recursive: true });
    writeFileSync(join(folder, 'cifar-10-batches-bin', 'data_batch_1.bin'), records(3));
    writeFileSync(join(folder, 'cifar-10-batches-bin', 'data_batch_2.bin'), records(2, 3));
    const data = cifar10(folder);
    expect(data).toMatchObject({ samples: 5, classes: 10, sampleShape: [32, 32, 3] });
    const image = new Float32Array(3072);
    expect(data.read(4, image)).toBe(4);
    const normal = (value: number, mean: number, deviation: number): number =>
      (value / 255 - mean) / deviation;
    expect(image[0]).toBeCloseTo(normal(4, 0.4914, 0.247), 5);
    expect(image[1]).toBeCloseTo(normal(104, 0.4822, 0.2435), 5);
    expect(image[2]).toBeCloseTo(normal(200, 0.4465, 0.2616), 5);
    expect(image[3071]).toBeCloseTo(normal(0, 0.4465, 0.2616), 5);
  });

  it('says what is wrong with a folder or a file', () => {
    const folder = join(scratch, 'wrong');
    mkdirSync(folder);
    expect(() => cifar10(folder)).toThrow(`${folder}, got none`);
    writeFileSync(join(folder, 'test_batch.bin'), records(2).subarray(1));
    expect(() => cifar10(folder, 'test')).toThrow(/\b3073 bytes .* got 6145/);
    const mislabelled = records(2);
    mislabelled[3073] = 10;
    writeFileSync(join(folder, 'test_batch.bin'), mislabelled);
    expect(() => cifar10(folder, 'test')).toThrow(/below 10 .* got 10 .*record 1\b/);
  });
});

describe('synthetic data', () => {
  it.each([
    ['cifar10', [32, 32, 3], 10, 50_000],
    ['imagenet', [224, 224, 3], 1000, 1_281_167],
    ['mnist', [28, 28, 1], 10, 60_000],
    ['tokens', [128], 2, 50_000],
  ] as const)('%s has the shape of the real one', (name, sampleShape, classes, samples) => {
    expect(openDataset(name)).toMatchObject({ sampleShape, classes, samples });
  });

  it('follows from the seed', () => {
    const sample = (seed: number, index: number): Float32Array => {
      const into = new Float32Array(3072);
      openDataset('cifar10', { seed }).read(index, into);
      return into;
    };
    expect(sample(1, 7)).toEqual(sample(1, 7));
    expect(sample(1, 7)).not.toEqual(sample(2, 7));
    expect(sample(1, 7)).not.toEqual(sample(1, 17));
  });

  it('has images that are nearer to those of their class than to others', () => {
    const data = syntheticImages('images', [16, 16, 3], { classes: 4 });
    const read = (index: number): Float32Array => {
      const into = new Float32Array(768);
      data.read(index, into);
      return into;
    };
    const distance = (a: Float32Array, b: Float32Array): number =>
      a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0);
    for (let index = 0; index < 4; ++index) {
      const own = distance(read(index), read(index + 4));
      expect(own).toBeLessThan(distance(read(index), read(index + 5)));
    }
  });

  it('has tokens within the vocabulary, of which the label can be told', () => {
    const data = openDataset('tokens', { length: 64, vocabulary: 100 });
    const tokens = new Int32Array(64);
    for (let index = 0; index < 20; ++index) {
      const label = data.read(index, tokens);
      expect(Math.min(...tokens)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...tokens)).toBeLessThan(100);
      const own = tokens.filter((token) => Math.floor(token / 50) === label).length;
      expect(own).toBeGreaterThan(32);
    }
  });
});

describe('Batches', () => {
  const data = syntheticImages('images', [2, 2, 1], { samples: 50, classes: 5 });

  it.each([1, 2, 3, 4, 7])('deals %i ranks what one rank would see', (size) => {
    const one = new Batches(data, { batchSize: 2 * size, seed: 3 });
    const ranks = Array.from(
      { length: size },
      (_, rank) => new Batches(data, { batchSize: 2, rank, size, seed: 3 }),
    );
    // Beyond the first epoch.
    for (let seen = 0; seen < 120; seen += 2 * size) {
      const whole = one.at(seen);
      const parts = ranks.map((rank) => rank.at(seen));
      expect(parts.flatMap(({ indices }) => [...indices])).toEqual([...whole.indices]);
      expect(parts.flatMap(({ labels }) => [...labels])).toEqual([...whole.labels]);
      expect(parts.flatMap(({ inputs }) => [...inputs])).toEqual([...whole.inputs]);
    }
  });

  it('gives each sample once an epoch, in another order each time', () => {
    const batches = new Batches(data, { batchSize: 5 });
    const epoch = (start: number): number[] =>
      Array.from({ length: 10 }, (_, step) => [...batches.at(start + 5 * step).indices]).flat();
    const all = Array.from({ length: 50 }, (_, index) => index);
    expect(epoch(0).toSorted((a, b) => a - b)).toEqual(all);
    expect(epoch(50).toSorted((a, b) => a - b)).toEqual(all);
    expect(epoch(0)).not.toEqual(epoch(50));
  });

  it('goes on at any place with another number of ranks', () => {
    const batches = new Batches(data, { batchSize: 4, rank: 2, size: 3 });
    expect(batches.at(46).indices).toHaveLength(4);
    expect(batches.at(7).indices).toHaveLength(4);
  });

  it('says what is wrong', () => {
    expect(() => new Batches(data, { batchSize: 20, size: 3 })).toThrow(
      /\b50 samples .*\b3 ranks .*batchSize, got 60/,
    );
    expect(() => new Batches(data, { batchSize: 0 })).toThrow(/batchSize/);
  });
});
