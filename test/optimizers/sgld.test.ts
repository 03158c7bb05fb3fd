// SGLD's noise: normal, and the same wherever and in how many parts it is made.
import { expect, it } from 'vitest';

import { SGLD } from '../../lib/index.js';

const count = 100_000;

interface Noise {
  readonly seed?: number;
  readonly key?: string;
  readonly updates?: number;
}

/** What the last of the updates added to weights of 0, in units of its deviation. */
function noise({ seed = 0, key = 'w', updates = 1 }: Noise, length = count): Float64Array {
  const optimizer = new SGLD({ learningRate: 0.25, seed });
  const weight = new Float64Array(length);
  for (let update = 0; update < updates; update += 1) {
    weight.fill(0);
    optimizer.update(key, weight, new Float64Array(length));
  }
  return weight.map((one) => one / 0.5);
}

const mean = (values: Float64Array): number =>
  values.reduce((sum, one) => sum + one, 0) / values.length;

it('adds normal noise whose variance is the rate', () => {
  const values = noise({});
  const moment = (power: number): number => mean(values.map((one) => one ** power));
  // Five deviations of what the mean of so many has.
  const far = 5 / Math.sqrt(count);
  expect(Math.abs(moment(1))).toBeLessThan(far);
  expect(Math.abs(moment(2) - 1)).toBeLessThan(far * Math.sqrt(2));
  expect(Math.abs(moment(3))).toBeLessThan(far * Math.sqrt(15));
  expect(Math.abs(moment(4) - 3)).toBeLessThan(far * Math.sqrt(96));
  expect(values.reduce((most, one) => Math.max(most, Math.abs(one)), 0)).toBeGreaterThan(3.5);
});

it('is another for each seed, key, update and element, without correlation, and the same again', () => {
  const first = noise({});
  expect(noise({})).toEqual(first);
  const others = [noise({ seed: 1 }), noise({ key: 'v' }), noise({ updates: 2 })];
  const shifted = first.map((_, i) => first[(i + 1) % count]!);
  for (const other of [...others, shifted]) {
    const product = mean(first.map((one, i) => one * other[i]!));
    expect(Math.abs(product)).toBeLessThan(5 / Math.sqrt(count));
  }
});

it('does not depend on the length, and has the same bits on every machine', () => {
  expect(noise({}, 10_001)).toEqual(noise({}).subarray(0, 10_001));
  expect([...noise({ seed: 7, key: 'layer', updates: 3 }, 3)]).toEqual([
    0.23503402208552923, -0.6884083635069813, -1.5437813391069135,
  ]);
});

it('steps by half the rate', () => {
  const optimizer = (): SGLD =>
    new SGLD({ learningRate: 0.25, wd: 0.5, rescaleGrad: 2, clipGradient: 3 });
  const weight = Float64Array.of(1, 2, -3);
  const still = new Float64Array(3);
  optimizer().update('w', still, new Float64Array(3));
  optimizer().update('w', weight, Float64Array.of(1, -5, 0.25));
  const step = weight.map((one, i) => one - still[i]!);
  const expected = [1 - 0.125 * (2 + 0.5), 2 - 0.125 * (-3 + 1), -3 - 0.125 * (0.5 - 1.5)];
  expected.forEach((one, i) => {
    expect(step[i]).toBeCloseTo(one, 12);
  });
});

it('refuses a negative rate', () => {
  expect(() => {
    new SGLD({ learningRate: -1 }).update('w', new Float32Array(1), new Float32Array(1));
  }).toThrow('at least 0');
});
