// Batch normalisation as one operation with its own gradient, because each direction needs sums of all ranks.
import type { Tensor } from '@tensorflow/tfjs-core';

import { tf } from '../tfjs.js';
import { fromSums, toSums } from './statistics.js';

export interface NormalizeRequest {
  /** The channel dimension, from 0. */
  readonly axis: number;
  readonly epsilon: number;
  /** Sums over the ranks in place; blocks. */
  readonly sum: (own: Float64Array<ArrayBuffer>) => Float64Array;
}

/** The results; mean and variance are over all ranks. */
export interface Normalized {
  readonly value: Tensor;
  readonly mean: Float32Array;
  readonly variance: Float32Array;
}

/** `gamma * (x - mean) / sqrt(variance + epsilon) + beta`, by channel. */
export function normalized(
  x: Tensor,
  gamma: Tensor,
  beta: Tensor,
  { axis, epsilon, sum }: NormalizeRequest,
): Normalized {
  const channels = x.shape[axis]!;
  const others = [...x.shape.keys()].filter((dimension) => dimension !== axis);
  const broadcast = x.shape.map((length, dimension) => (dimension === axis ? length : 1));
  const byChannel = (values: Tensor | ArrayLike<number>): Tensor =>
    tf.reshape(
      values instanceof tf.Tensor ? values : tf.tensor1d(Float32Array.from(values)),
      broadcast,
    );
  // Backends disagree on sums of an empty batch.
  const sumsOf = (tensor: Tensor): Float32Array =>
    tensor.size === 0
      ? new Float32Array(channels)
      : (tf.sum(tensor, others).dataSync() as Float32Array);
  const count = channels === 0 ? 0 : x.size / channels;
  let mean = new Float32Array(channels);
  let variance = new Float32Array(channels);

  const operation = tf.customGrad((...given) => {
    const [input, scale, offset, save] = given as unknown as [
      Tensor,
      Tensor,
      Tensor,
      (tensors: Tensor[]) => void,
    ];
    const own = Float32Array.from(sumsOf(input), (total) => (count === 0 ? 0 : total / count));
    const squares = sumsOf(tf.square(tf.sub(input, byChannel(own))));
    const all = fromSums(sum(toSums({ count, mean: own, squares })));
    const total = Math.max(all.count, 1);
    mean = Float32Array.from(all.mean);
    variance = Float32Array.from(all.squares, (one) => one / total);
    const inverse = all.squares.map((one) => 1 / Math.sqrt(one / total + epsilon));
    const hat = tf.mul(tf.sub(input, byChannel(mean)), byChannel(inverse));
    save([hat, scale]);
    const gradFunc = (dy: Tensor, saved: Tensor[]): Tensor[] => {
      const [normal, factor] = saved as [Tensor, Tensor];
      const dBeta = sumsOf(dy);
      const dGamma = sumsOf(tf.mul(dy, normal));
      const both = sum(Float64Array.from([...dBeta, ...dGamma])).map((one) => one / total);
      const along = tf.mul(normal, byChannel(both.subarray(channels)));
      const centred = tf.sub(tf.sub(dy, byChannel(both.subarray(0, channels))), along);
      const slope = tf.mul(byChannel(factor), byChannel(inverse));
      return [tf.mul(centred, slope), tf.tensor1d(dGamma), tf.tensor1d(dBeta)];
    };
    const value = tf.add(tf.mul(hat, byChannel(scale)), byChannel(offset));
    return { value, gradFunc: gradFunc };
  });
  const value = operation(x, gamma, beta);
  return { value, mean, variance };
}
