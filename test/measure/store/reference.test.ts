import { describe, expect, it } from 'vitest';

import {
  drawGradients,
  gradientTypes,
  type GradientArray,
  type GradientType,
} from '../../../lib/measure/store/gradients.js';
import { errorTolerance, StoreReference } from '../../../lib/measure/store/reference.js';
import { SGD } from '../../../lib/optimizers/index.js';
import { halfTable, toHalf } from '../../../lib/tensor/half.js';

const of = (...values: number[]) => Float32Array.of(...values);

function numbersOf(array: GradientArray, dtype: GradientType): number[] {
  if (dtype !== 'float16' && dtype !== 'bfloat16') return Array.from(array);
  const table = halfTable(dtype);
  return Array.from(array, (bits) => table[bits] ?? NaN);
}

/** The definition, one number after the other. */
function drawn(dtype: GradientType, count: number, [seed, array, device]: number[]): number[] {
  let state = seed ?? 0;
  for (const part of [array, device]) {
    state ^= (state >>> 16) ^ Math.imul((part ?? 0) + 1, 0x9e3779b9);
    state = Math.imul(state, 0x21f0aaad);
  }
  return Array.from({ length: count }, () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    const value = (mixed ^ (mixed >>> 15)) / 2 ** 31;
    if (dtype === 'float64') return value;
    return dtype === 'float32' ? Math.fround(value) : toHalf(dtype, value);
  });
}

describe('gradients', () => {
  it.each(gradientTypes)(
    'of %s are uniform in [-1, 1] and fixed by seed, array and device',
    (dtype) => {
      const count = 20_000;
      const numbers = (seed: number, array: number, device: number) => {
        const lengths = new Array<number>(array + 1).fill(count);
        const all = drawGradients(dtype, lengths, device + 1, seed);
        return numbersOf(all[array]?.[device] ?? of(), dtype);
      };
      const first = numbers(3, 1, 0);
      expect(numbers(3, 1, 0)).toEqual(first);
      for (const other of [numbers(4, 1, 0), numbers(3, 2, 0), numbers(3, 1, 1)]) {
        // Streams are unrelated: about no element is the same (of bfloat16, one in hundreds).
        expect(other.filter((value, i) => value === first[i]).length).toBeLessThan(count / 50);
        let product = 0;
        other.forEach((value, i) => (product += value * (first[i] ?? 0)));
        // A mean of 20,000 products of variance 1/9: five standard deviations.
        expect(Math.abs(product / count)).toBeLessThan(5 / 3 / Math.sqrt(count));
      }
      let sum = 0;
      let squares = 0;
      for (const value of first) {
        sum += value;
        squares += value * value;
      }
      expect(Math.max(...first.map(Math.abs))).toBeLessThanOrEqual(1);
      expect(Math.abs(sum / count)).toBeLessThan(5 * Math.sqrt(1 / 3 / count));
      expect(squares / count).toBeCloseTo(1 / 3, 1);
    },
  );

  it.each(gradientTypes)('of %s have the bits of their definition, in every part', (dtype) => {
    // More than one part of a thread, and none a multiple of a part.
    const lengths = [300_001, 0, 7];
    const gradients = drawGradients(dtype, lengths, 2, 9);
    gradients.forEach((devices, array) => {
      devices.forEach((gradient, device) => {
        const expected = drawn(dtype, lengths[array] ?? 0, [9, array, device]);
        expect(gradient.length).toBe(expected.length);
        expect(expected.findIndex((value, i) => !Object.is(value, gradient[i]))).toBe(-1);
      });
    });
  });
});

describe('what a store must give', () => {
  const gradients = [
    [of(0.5, -0.25), of(0.25, -0.5)],
    [of(-1), of(0.5)],
  ];
  const outs = (...values: [number, number, number]) => [
    [of(values[0], values[1]), of(values[0], values[1])],
    [of(values[2]), of(values[2])],
  ];

  it('is the sum, every batch the same', () => {
    const reference = new StoreReference({ dtype: 'float32', gradients, workers: 1 });
    expect(reference.compare(outs(0.75, -0.75, -0.5))).toEqual({ error: 0, wrong: 0 });
    expect(reference.compare(outs(0.75, -0.75, -0.5))).toEqual({ error: 0, wrong: 0 });
  });

  it('is that of all workers', () => {
    const reference = new StoreReference({ dtype: 'float32', gradients, workers: 3 });
    expect(reference.compare(outs(2.25, -2.25, -1.5))).toEqual({ error: 0, wrong: 0 });
  });

  it("is off by MXNet's error: over all devices above, over one below", () => {
    const reference = new StoreReference({ dtype: 'float32', gradients, workers: 1 });
    // 0.25 too much on each of two devices, of 0.75 + 0.75 + 0.5 = 2.
    const { error, wrong } = reference.compare(outs(1, -0.75, -0.5));
    expect(error).toBe(0.25);
    expect(wrong).toBe(2);
  });

  it('counts NaN as wrong', () => {
    const reference = new StoreReference({ dtype: 'float32', gradients, workers: 1 });
    expect(reference.compare(outs(NaN, -0.75, -0.5))).toEqual({ error: NaN, wrong: 2 });
  });

  it.each(gradientTypes)('adds up from first to last, to the bit: %s', (dtype) => {
    // Of several blocks, more devices than are compared side by side, and wrong throughout.
    const gradients = drawGradients(dtype, [5000, 1], 5, 1);
    const outs = drawGradients(dtype, [5000, 1], 5, 2);
    const numbers = (arrays: typeof outs) =>
      arrays.map((devices) => devices.map((one) => numbersOf(one, dtype)));
    const pulled = numbers(outs);
    let magnitude = 0;
    let difference = 0;
    numbers(gradients).forEach((devices, array) => {
      const expected = (devices[0] ?? []).map(
        (_, i) => devices.reduce((sum, one) => sum + (one[i] ?? 0), 0) * 2,
      );
      magnitude += expected.reduce((sum, value) => sum + Math.abs(value), 0);
      for (const out of pulled[array] ?? []) {
        let off = 0;
        out.forEach((value, i) => (off += Math.abs(value - (expected[i] ?? 0))));
        difference += off;
      }
    });
    const reference = new StoreReference({ dtype, gradients, workers: 2 });
    expect(reference.compare(outs).error).toBe(difference / magnitude);
  });

  it('divides by no zero', () => {
    const zeros = [[of(0), of(0)]];
    const reference = () => new StoreReference({ dtype: 'float32', gradients: zeros, workers: 1 });
    expect(reference().compare(zeros)).toEqual({ error: 0, wrong: 0 });
    expect(reference().compare([[of(1), of(0)]])).toEqual({ error: Infinity, wrong: 1 });
  });

  it('goes on with an optimizer from batch to batch', () => {
    const optimizer = new SGD({ learningRate: 0.5 });
    const reference = new StoreReference({ dtype: 'float32', gradients, workers: 1, optimizer });
    expect(reference.compare(outs(-0.375, 0.375, 0.25))).toEqual({ error: 0, wrong: 0 });
    expect(reference.compare(outs(-0.75, 0.75, 0.5))).toEqual({ error: 0, wrong: 0 });
    // The one before again: too little.
    expect(reference.compare(outs(-0.75, 0.75, 0.5)).wrong).toBe(4);
  });

  it('2bit keeps what it does not send', () => {
    const compression = { type: '2bit', threshold: 0.5 } as const;
    const reference = new StoreReference({
      dtype: 'float32',
      gradients: [[of(0.3, 0.6, -0.3)]],
      workers: 1,
      compression,
    });
    // Residuals 0.3, 0.1, -0.3; then 0.6 -> 0.1, 0.7 -> 0.2, -0.6 -> -0.1; then 0.4, 0.8, -0.4.
    expect(reference.compare([[of(0, 0.5, 0)]])).toEqual({ error: 0, wrong: 0 });
    expect(reference.compare([[of(0.5, 0.5, -0.5)]])).toEqual({ error: 0, wrong: 0 });
    expect(reference.compare([[of(0, 0.5, 0)]])).toEqual({ error: 0, wrong: 0 });
  });

  it('1bit sends a sign and keeps the rest', () => {
    const compression = { type: '1bit', threshold: 0.5 } as const;
    const reference = new StoreReference({
      dtype: 'float32',
      gradients: [[of(0.75, 0.25)]],
      workers: 1,
      compression,
    });
    // Residuals -0.25, 1.25; then 0.5 is not above the threshold -> 1.5, and 1.5 -> 0.5.
    expect(reference.compare([[of(1, -1)]])).toEqual({ error: 0, wrong: 0 });
    expect(reference.compare([[of(-1, 1)]])).toEqual({ error: 0, wrong: 0 });
  });
});

it('2bit of sums keeps one rest for all devices', () => {
  const reference = new StoreReference({
    dtype: 'float32',
    gradients: [[of(0.3, -0.4), of(0.1, -0.2)]],
    workers: 2,
    compression: { type: '2bit', threshold: 0.5 },
    compressesSums: true,
  });
  const twice = (...values: [number, number]) => [[of(...values), of(...values)]];
  // Sums 0.4, -0.6 for each of two workers; then 0.8 and -0.7.
  expect(reference.compare(twice(0, -1))).toEqual({ error: 0, wrong: 0 });
  expect(reference.compare(twice(1, -1))).toEqual({ error: 0, wrong: 0 });
});

describe('the bound of the error', () => {
  it('is far below a lost gradient and above the rounding of the type', () => {
    for (const dtype of gradientTypes) {
      for (const devices of [1, 2, 4, 8]) {
        const bound = errorTolerance(dtype, devices, 10);
        expect(bound).toBeLessThan(0.5);
        expect(bound).toBeGreaterThan(dtype === 'bfloat16' ? 2 ** -9 : 2 ** -53);
      }
    }
    expect(errorTolerance('float32', 4, 0)).toBeLessThan(1e-4);
  });
});
