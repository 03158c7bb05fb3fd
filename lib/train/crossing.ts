// Moves values between the backend's memory and arrays, many tensors at once if each transfer is expensive.
import type { Tensor } from '@tensorflow/tfjs-core';

import { tf } from './tfjs.js';

/** The used members of a backend. */
interface AnyBackend {
  /** wasm: a view of its memory. */
  typedArrayFromHeap?(tensor: Tensor): unknown;
  /** tfjs-node. */
  readonly isUsingGpuDevice?: boolean;
}

function backend(): AnyBackend {
  return tf.backend() as unknown as AnyBackend;
}

/**
 * Whether tensors are in memory that JavaScript cannot read, as on a GPU: each read is then a transfer that waits for
 * all earlier computing. Elsewhere gathering only adds a copy, which costs more than it saves.
 */
export function crossingCosts(): boolean {
  const { isUsingGpuDevice } = backend();
  return isUsingGpuDevice ?? !['cpu', 'wasm'].includes(tf.getBackend());
}

/**
 * Waits until `tensor` is computed. GPU computing is asynchronous, and would otherwise be measured as copying by the
 * next read.
 */
export function settle(tensor: Tensor): void {
  if (backend().isUsingGpuDevice !== true || tensor.size === 0) return;
  const first = tf.tidy(() => tf.slice(tf.reshape(tensor, [tensor.size]), [0], [1]));
  first.dataSync();
  first.dispose();
}

/**
 * Values of a float32 tensor without a copy, if the backend exposes its memory. Valid until the tensor is disposed or
 * anything is computed.
 */
export function liveValues(tensor: Tensor): Float32Array {
  const live = backend().typedArrayFromHeap?.(tensor);
  return live instanceof Float32Array ? live : ownValues(tensor);
}

export function ownValues(tensor: Tensor): Float32Array {
  return tensor.dataSync() as Float32Array;
}

/** Values of float32 tensors, concatenated, with one read. */
export function gathered(tensors: readonly Tensor[]): Float32Array {
  const flat = tf.tidy(() => tf.concat(tensors.map((one) => tf.reshape(one, [one.size]))));
  // Not inside tidy(), which traverses a returned array.
  const values = ownValues(flat);
  flat.dispose();
  return values;
}

/** Tensors from concatenated values, with one write; the caller disposes them. */
export function scattered(values: Float32Array, shapes: readonly (readonly number[])[]): Tensor[] {
  const sizes = shapes.map((shape) => shape.reduce((product, length) => product * length, 1));
  // The cpu backend keeps the given array, and its slices are views.
  const own = tf.getBackend() === 'cpu' ? values.slice() : values;
  return tf.tidy(() => {
    const parts = tf.split(tf.tensor1d(own), sizes);
    return parts.map((part, i) => tf.reshape(part, [...shapes[i]!]));
  });
}
