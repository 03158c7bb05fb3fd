// How values get from the backend's memory to arrays and back: many tensors at once, where a crossing costs.
import type { Tensor } from '@tensorflow/tfjs-core';

import { tf } from './tfjs.js';

/** What is asked of a backend. */
interface AnyBackend {
  /** Of wasm: its memory, which JavaScript sees as it is. */
  typedArrayFromHeap?(tensor: Tensor): unknown;
  /** Of tfjs-node. */
  readonly isUsingGpuDevice?: boolean;
}

function backend(): AnyBackend {
  return tf.backend() as unknown as AnyBackend;
}

/**
 * Whether tensors lie where JavaScript does not reach, as on a GPU: each read is then a transfer that waits for all
 * computing before it. Elsewhere gathering only adds a copy, which costs more than the calls that it saves.
 */
export function crossingCosts(): boolean {
  const { isUsingGpuDevice } = backend();
  return isUsingGpuDevice ?? !['cpu', 'wasm'].includes(tf.getBackend());
}

/**
 * Returns when `tensor` has been computed. A GPU computes behind the calls' back, and whoever reads next would take its
 * computing for copying.
 */
export function settle(tensor: Tensor): void {
  if (backend().isUsingGpuDevice !== true || tensor.size === 0) return;
  const first = tf.tidy(() => tf.slice(tf.reshape(tensor, [tensor.size]), [0], [1]));
  first.dataSync();
  first.dispose();
}

/**
 * Values of a float32 tensor without a copy, where the backend shows its memory: until the tensor is disposed or
 * anything else is computed.
 */
export function liveValues(tensor: Tensor): Float32Array {
  const live = backend().typedArrayFromHeap?.(tensor);
  return live instanceof Float32Array ? live : ownValues(tensor);
}

export function ownValues(tensor: Tensor): Float32Array {
  return tensor.dataSync() as Float32Array;
}

/** Values of float32 tensors one after the other, with one read. */
export function gathered(tensors: readonly Tensor[]): Float32Array {
  const flat = tf.tidy(() => tf.concat(tensors.map((one) => tf.reshape(one, [one.size]))));
  // Not inside tidy(), which looks through all of an array that its function returns.
  const values = ownValues(flat);
  flat.dispose();
  return values;
}

/** Tensors of the values that lie one after the other, with one write; the caller's to dispose. */
export function scattered(values: Float32Array, shapes: readonly (readonly number[])[]): Tensor[] {
  const sizes = shapes.map((shape) => shape.reduce((product, length) => product * length, 1));
  // The cpu backend keeps the very array it is given, and makes parts of it views.
  const own = tf.getBackend() === 'cpu' ? values.slice() : values;
  return tf.tidy(() => {
    const parts = tf.split(tf.tensor1d(own), sizes);
    return parts.map((part, i) => tf.reshape(part, [...shapes[i]!]));
  });
}
