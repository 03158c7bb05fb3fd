// Each optimizer, several steps on random input, against the float64 reference in test/support.
import { describe, expect, it } from 'vitest';

import { createOptimizer } from '../../lib/index.js';
import { Random } from '../attack/support/random.js';
import { referenceOptimizer } from '../support/optimizer-reference.js';
import type { ReferenceOptions } from '../support/optimizer-reference.js';

const count = 1003;
const steps = 6;

/** Numbers in [-1, 1) that differ by seed and are the same in every run. */
function random(seed: number): number[] {
  const numbers = new Random(seed);
  return Array.from({ length: count }, () => Math.fround(numbers.next() * 2 - 1));
}

const shared = { wd: 0.01, rescaleGrad: 0.5, clipGradient: 0.3 };
const cases: readonly (readonly [string, ReferenceOptions])[] = [
  ['sgd', {}],
  ['sgd', { ...shared, learningRate: 0.1 }],
  ['sgd', { ...shared, learningRate: 0.1, momentum: 0.9 }],
  ['sgd', { ...shared, learningRate: 0.1, momentum: 0.9, nesterov: true }],
  ['sgd', { ...shared, nesterov: true }],
  ['adam', {}],
  ['adam', { ...shared, learningRate: 0.02, beta1: 0.8, beta2: 0.99, epsilon: 1e-6 }],
  ['adamw', {}],
  ['adamw', { ...shared, learningRate: 0.02 }],
  ['adamw', { ...shared, biasCorrection: false }],
  ['adagrad', {}],
  ['adagrad', { ...shared, learningRate: 0.1, epsilon: 1e-3 }],
  ['rmsprop', {}],
  ['rmsprop', { ...shared, gamma1: 0.8, clipWeights: 0.6 }],
  ['rmsprop', { ...shared, centered: true, gamma2: 0.7 }],
  ['rmsprop', { centered: true, clipWeights: 0.9 }],
  ['adadelta', {}],
  ['adadelta', { ...shared, rho: 0.8, epsilon: 1e-4 }],
  ['ftrl', {}],
  ['ftrl', { ...shared, learningRate: 0.3, lambda1: 0.2, beta: 0.5 }],
  ['signum', {}],
  ['signum', { ...shared, momentum: 0.5, wdLh: 0.1 }],
  ['signum', { ...shared, momentum: 0 }],
  ['lars', {}],
  ['lars', { ...shared, learningRate: 0.5, momentum: 0.9, eta: 0.1, epsilon: 1e-3 }],
  ['lamb', {}],
  ['lamb', { ...shared, learningRate: 0.05, lowerBound: 1, upperBound: 5 }],
  ['lamb', { ...shared, lowerBound: 100, biasCorrection: false }],
  ['adamax', {}],
  ['adamax', { ...shared, learningRate: 0.02, beta1: 0.8, beta2: 0.9 }],
  ['nadam', {}],
  ['nadam', { ...shared, learningRate: 0.02, scheduleDecay: 0.5 }],
  ['ftml', {}],
  ['ftml', { ...shared, learningRate: 0.02, beta1: 0.5, epsilon: 1e-4 }],
  ['dcasgd', {}],
  ['dcasgd', { ...shared, learningRate: 0.3, momentum: 0.9, lambda: 2 }],
  ['lbsgd', {}],
  ['lbsgd', { ...shared, learningRate: 0.1, momentum: 0.9, batchScale: 2, updatesPerEpoch: 1 }],
  ['lbsgd', { batchScale: 3, warmupStrategy: 'power2', warmupEpochs: 2, beginEpoch: 1 }],
  ['lbsgd', { ...shared, batchScale: 2, warmupStrategy: 'sqrt', momentum: 0.5 }],
  ['lbsgd', { ...shared, batchScale: 2, warmupStrategy: 'lars', momentum: 0.5 }],
  ['test', {}],
  ['test', { rescaleGrad: 0.25 }],
];

/** The largest difference to the reference, of values of order 1, after all steps. */
function deviation(
  Array: typeof Float32Array | typeof Float64Array,
  name: string,
  options: ReferenceOptions,
): number {
  const optimizer = createOptimizer(name, options);
  const reference = referenceOptimizer(name, options, count);
  const expected = random(1);
  const weight = new Array(expected);
  const before = new Array(weight);
  for (let t = 1; t <= steps; t += 1) {
    const grad = random(10 + t);
    reference(expected, grad, t);
    optimizer.update(0, weight, new Array(grad));
  }
  expect(weight).not.toEqual(before);
  return expected.reduce((worst, value, i) => {
    const difference = Math.abs(weight[i]! - value) / Math.max(1, Math.abs(value));
    return Number.isNaN(difference) ? Infinity : Math.max(worst, difference);
  }, 0);
}

describe.each(cases)('%s %j', (name, options) => {
  it('follows the reference in float64 and float32', () => {
    expect(deviation(Float64Array, name, options)).toBeLessThan(1e-12);
    // Each step rounds a few times at values up to about 2.
    expect(deviation(Float32Array, name, options)).toBeLessThan(steps * 4 * 2 ** -24);
  });
});

it('multiplies rate and decay by key, and knows biases by their names', () => {
  const optimizer = createOptimizer('sgd', {
    learningRate: 1,
    wd: 0.5,
    lrMult: { 1: 0.25 },
    wdMult: { fc2_bias: 2 },
    paramNames: ['fc1_weight', 'fc1_bias', 'fc2_bias'],
  });
  const after = [0, 1, 2, 'other'].map((key) => {
    const weight = Float32Array.of(1);
    optimizer.update(key, weight, Float32Array.of(0.125));
    return weight[0];
  });
  expect(after).toEqual([
    1 - 0.5 - 0.125, // weight decay
    1 - 0.25 * 0.125, // a bias: none
    1 - 2 * 0.5 - 0.125, // a bias that was given one
    1 - 0.5 - 0.125, // no name, so nothing is known of it
  ]);
});
