import * as tf from '@tensorflow/tfjs-core';
import type { Scalar, Tensor2D, Variable } from '@tensorflow/tfjs-core';

import { useBackend } from '../../lib/train/backends.js';
import type { BackendName } from '../../lib/train/names.js';
import { testBackend } from '../support/training.js';

export { asRanks } from '../support/ranks.js';

/** Makes ready what the project's tests compute with, or, where it says nothing, `otherwise`: plain JavaScript. */
export async function useTestBackend(otherwise: BackendName = 'cpu'): Promise<void> {
  const { engine } = await useBackend(testBackend ?? otherwise, { allowCpu: true });
  if (tf.getBackend() !== engine) throw new Error(`expected ${engine}, got ${tf.getBackend()}`);
}

/** Numbers between -1 and 1 that look like nothing in particular; the same each time. */
export function sines(count: number, step: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(1 + i * step));
}

/** One of each kind that TensorFlow.js has. */
export const optimizers: Readonly<Record<string, () => tf.Optimizer>> = {
  sgd: () => tf.train.sgd(0.1),
  momentum: () => tf.train.momentum(0.05, 0.9),
  nesterov: () => tf.train.momentum(0.05, 0.9, true),
  adagrad: () => tf.train.adagrad(0.1),
  adadelta: () => tf.train.adadelta(0.5, 0.9, 1e-4),
  adam: () => tf.train.adam(0.01),
  adamax: () => tf.train.adamax(0.01, 0.7, 0.99, 1e-3, 0.1),
  rmsprop: () => tf.train.rmsprop(0.01, 0.9, 0.5),
  'rmsprop, centered': () => tf.train.rmsprop(0.01, 0.7, 0.5, 1, true),
};

/** Samples of 3 numbers and what 2 numbers they go with. */
export interface Samples {
  readonly x: Tensor2D;
  readonly y: Tensor2D;
}

/** Rows `from` to `to` of the one set of samples. */
export function samples(from: number, to: number): Samples {
  const rows = to - from;
  const x = sines(64 * 3, 0.91).slice(from * 3, to * 3);
  const y = sines(64 * 2, 1.7).slice(from * 2, to * 2);
  return { x: tf.tensor2d(x, [rows, 3]), y: tf.tensor2d(y, [rows, 2]) };
}

/** A small network whose second bias is used twice; the same start each time. */
export class Network {
  readonly w1 = tf.variable(tf.tensor2d(sines(3 * 5, 0.37), [3, 5]));
  readonly b1 = tf.variable(tf.tensor1d(sines(5, 0.11)));
  readonly w2 = tf.variable(tf.tensor2d(sines(5 * 2, 0.53), [5, 2]));
  readonly b2 = tf.variable(tf.tensor1d(sines(2, 0.29)));
  readonly variables: Variable[] = [this.w1, this.b1, this.w2, this.b2];

  loss({ x, y }: Samples): Scalar {
    const hidden = tf.tanh(tf.add(tf.matMul(x, this.w1), this.b1));
    const out = tf.add(tf.matMul(hidden, this.w2), this.b2);
    return tf.mean(tf.square(tf.sub(tf.add(out, tf.mul(0.1, this.b2)), y)));
  }

  values(): number[] {
    return this.variables.flatMap((variable) => [...variable.dataSync()]);
  }

  dispose(): void {
    tf.dispose(this.variables);
  }
}

export function largestDifference(a: readonly number[], b: readonly number[]): number {
  return Math.max(...a.map((value, i) => Math.abs(value - b[i]!)), Number(a.length !== b.length));
}
