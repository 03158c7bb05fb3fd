// What is a row of a value.
import { expect, it } from 'vitest';

import { rowLengthOf } from '../../lib/tensor/shape.js';

it.each([
  [undefined, 7, 1],
  [[7], 7, 1],
  [[2, 3, 4], 24, 12],
  [[0, 3], 0, 3],
  [[3, 0], 0, 1],
  // A scalar: one row of one element.
  [[], 1, 1],
] as const)('a value of shape %j and %i elements has rows of %i', (shape, count, length) => {
  expect(rowLengthOf(shape, count)).toBe(length);
});

it.each([
  [[], 2],
  [[], 0],
  [[2, 3], 7],
  [[-1, -6], 6],
  ['[6]', 6],
  [6, 6],
])('refuses the shape %j of %i elements', (shape, count) => {
  expect(() => rowLengthOf(shape, count)).toThrow(new RegExp(` ${count} elements.* shape`));
});
