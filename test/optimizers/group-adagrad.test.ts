// GroupAdaGrad, as MXNet 1.9.1's contrib optimizer of that name: a history with one number a row.

import { describe, expect, it } from 'vitest';

import { GroupAdaGrad, createOptimizer } from '../../lib/index.js';
import { errorWith } from '../support/errors.js';

type Matrix = number[][];

/** In float64, from the formula. */
function reference(rows: number, epsilon: number, lr: number, rescale: number, bound: number) {
  const history = new Array<number>(rows).fill(0);
  return (w: Matrix, grad: Matrix) => {
    grad.forEach((given, row) => {
      const g = given.map((x) => Math.max(-bound, Math.min(bound, x * rescale)));
      history[row]! += g.reduce((sum, x) => sum + x * x, 0) / g.length;
      const root = Math.sqrt(history[row]! + epsilon);
      g.forEach((x, i) => (w[row]![i]! -= (lr * x) / root));
    });
  };
}

const matrix = (rows: number, columns: number, seed: number): Matrix =>
  Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, i) => Math.fround(Math.sin(seed + row * 7 + i * 0.37))),
  );

// Blocks have 4096 elements: rows within one, across two and longer than one.
describe.each([
  [50, 3],
  [7, 4096],
  [5, 3000],
  [3, 10_007],
  [1, 9000],
  [9001, 1],
])('%i rows of %i', (rows, columns) => {
  it.each([
    ['float32', Float32Array, 1e-6],
    ['float64', Float64Array, 1e-13],
  ] as const)('follows the formula in %s', (_, Type, tolerance) => {
    const options = { learningRate: 0.1, rescaleGrad: 0.5, clipGradient: 0.4, epsilon: 1e-3 };
    const optimizer = new GroupAdaGrad(options);
    const step = reference(rows, 1e-3, 0.1, 0.5, 0.4);
    const expected = matrix(rows, columns, 1);
    const weight = Type.from(expected.flat());
    for (let t = 0; t < 4; t++) {
      const grad = matrix(rows, columns, 10 + t);
      step(expected, grad);
      optimizer.update('w', weight, Type.from(grad.flat()), { shape: [rows, columns] });
    }
    const worst = expected
      .flat()
      .reduce((most, x, i) => Math.max(most, Math.abs(x - weight[i]!)), 0);
    expect(worst).toBeLessThan(tolerance);
  });
});

it('leaves weights alone that have no gradient, without an epsilon too', () => {
  const weight = Float32Array.of(1, 2, 3, 4);
  const grad = Float32Array.of(0, 0, 3, 4);
  new GroupAdaGrad({ epsilon: 0 }).update('w', weight, grad, { shape: [2, 2] });
  const root = Math.sqrt(12.5);
  expect([...weight]).toEqual([1, 2, ...[3 - 0.03 / root, 4 - 0.04 / root].map(Math.fround)]);
});

it('keeps its states by themselves too', () => {
  const options = { shape: [2, 3] };
  const grad = Float32Array.of(1, 2, 3, 4, 5, 6);
  const [through, first] = [new GroupAdaGrad(), new GroupAdaGrad()];
  const [a, b] = [new Float32Array(6), new Float32Array(6)];
  through.update(0, a, grad, options);
  first.update(0, b, grad, options);
  const states = first.saveStates();
  expect(states.length).toBeLessThan(200);
  const second = new GroupAdaGrad();
  second.loadStates(states);
  through.update(0, a, grad, options);
  second.update(0, b, grad, options);
  expect(a).toEqual(b);
  expect(() => second.update(0, b, grad, { shape: [3, 2] })).toThrow(
    errorWith('ERR_INVALID_ARG_VALUE', /key 0 .*6 elements.*rows of 3.*6 elements.* rows of 2\b/),
  );
});

it('refuses weight decay and shapes that do not fit', () => {
  const decaying = { wd: 0.1 };
  expect(() => createOptimizer('groupadagrad', decaying)).toThrow(
    errorWith('ERR_INVALID_ARG_VALUE', /GroupAdaGrad.* wd,.*0\.1/),
  );
  expect(() =>
    new GroupAdaGrad().update(0, new Float32Array(4), new Float32Array(4), { shape: [3, 2] }),
  ).toThrow('shape');
});
