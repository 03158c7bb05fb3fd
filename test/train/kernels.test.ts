// Gradients that wasm lacks, held against the cpu backend's own.
import * as tf from '@tensorflow/tfjs-core';
import type { Tensor, Tensor4D } from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-wasm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { useBackend } from '../../lib/train/backends.js';
import { sines } from './support.js';

beforeAll(async () => {
  await useBackend('wasm');
});

afterAll(() => {
  tf.disposeVariables();
});

/** The gradients of `Σ f(inputs) · weights` by each input, on a backend. */
function gradientsOn(
  backend: string,
  f: (...inputs: Tensor[]) => Tensor,
  inputs: { values: Float32Array; shape: number[] }[],
): Float32Array[] {
  void tf.setBackend(backend);
  return tf.tidy(() => {
    const tensors = inputs.map(({ values, shape }) => tf.tensor(values, shape));
    const y = f(...tensors);
    const weights = tf.tensor(sines(y.size, 0.7), y.shape);
    const grads = tf.grads((...given: Tensor[]) => tf.sum(tf.mul(f(...given), weights)));
    return grads(tensors).map((gradient) => Float32Array.from(gradient.dataSync()));
  });
}

function expectSame(
  f: (...inputs: Tensor[]) => Tensor,
  ...inputs: { values: Float32Array; shape: number[] }[]
): void {
  const expected = gradientsOn('cpu', f, inputs);
  const got = gradientsOn('wasm', f, inputs);
  expect(got.length).toBe(expected.length);
  got.forEach((gradient, i) => {
    expect(gradient.length).toBe(expected[i]!.length);
    gradient.forEach((value, at) => expect(value).toBeCloseTo(expected[i]![at]!, 4));
  });
}

const input = (shape: number[], step = 0.37) => ({
  values: sines(
    shape.reduce((product, length) => product * length, 1),
    step,
  ),
  shape,
});

describe.each([
  { size: [7, 6], filter: [3, 3], strides: 1 },
  { size: [7, 6], filter: [3, 3], strides: 2 },
  { size: [8, 9], filter: [1, 1], strides: 2 },
  { size: [9, 8], filter: [5, 3], strides: [2, 3] },
  { size: [6, 6], filter: [2, 4], strides: [1, 2] },
])('$filter over $size by $strides', ({ size, filter, strides }) => {
  const uneven = [
    [0, 0],
    [2, 1],
    [0, 1],
    [0, 0],
  ];
  describe.each([{ pad: 'same' }, { pad: 'valid' }, { pad: uneven }])('padding $pad', ({ pad }) => {
    const by = strides as number | [number, number];
    const around = pad as 'same';

    test('convolution', () => {
      expectSame(
        (x, w) => tf.conv2d(x as Tensor4D, w as Tensor4D, by, around),
        input([2, ...size, 3]),
        input([...filter, 3, 4], 0.53),
      );
    });

    if (typeof pad !== 'object') {
      test.each([1, 2])('depthwise, %i for each channel', (multiplier) => {
        expectSame(
          (x, w) => tf.depthwiseConv2d(x as Tensor4D, w as Tensor4D, by, around),
          input([2, ...size, 3]),
          input([...filter, 3, multiplier], 0.53),
        );
      });
    }
  });
});

test('gathering adds up what was taken more than once', () => {
  const indices = [4, 0, 4, 1, 4];
  expectSame((x) => tf.gather(x, tf.tensor1d(indices, 'int32')), input([5, 3]));
  expectSame((x) => tf.gather(x, tf.tensor1d(indices, 'int32'), 1), input([2, 5, 3]));
  expectSame(
    (x) =>
      tf.gather(
        x,
        tf.tensor2d(
          [
            [2, 1],
            [0, 2],
          ],
          [2, 2],
          'int32',
        ),
      ),
    input([3, 4]),
  );
});

test('a transposed convolution has gradients too', () => {
  expectSame(
    (x, w) => tf.conv2dTranspose(x as Tensor4D, w as Tensor4D, [2, 8, 6, 3], 2, 'same'),
    input([2, 4, 3, 4]),
    input([3, 3, 3, 4], 0.53),
  );
});

test('nothing is left behind', () => {
  void tf.setBackend('wasm');
  const before = tf.memory().numTensors;
  gradientsOn('wasm', (x, w) => tf.conv2d(x as Tensor4D, w as Tensor4D, 2, 'same'), [
    input([1, 6, 6, 2]),
    input([3, 3, 2, 2]),
  ]);
  expect(tf.memory().numTensors).toBe(before);
});
