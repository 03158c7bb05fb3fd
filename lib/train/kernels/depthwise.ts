// Gradients of a depthwise convolution from operations that the backend has.
import type { Rank, Tensor4D } from '@tensorflow/tfjs-core';

import { tf } from '../tfjs.js';
import { spreadFor } from './convolution.js';
import { filterKernel, inputKernel } from './gradient-kernel.js';
import type { ConvAttributes, Describe } from './gradient-kernel.js';
import { eachTap, padded, underTap } from './patches.js';

const describe: Describe<ConvAttributes & { readonly dilations: [number, number] | number }> = (
  { strides, dilations, pad, dimRoundingMode },
  inputShape,
  filterShape,
) => {
  const { computeConv2DInfo: info } = tf.backend_util;
  return info(inputShape, filterShape, strides, dilations, pad, dimRoundingMode, true);
};

/** `dW[r, c, i, m] = Σ x[under tap r, c][…, i] · dy[…, i · multiplier + m]`. */
export const depthwiseFilterGradient = filterKernel(describe, (x, dy, info) => {
  const { inChannels, outChannels } = info;
  const positions = info.batchSize * info.outHeight * info.outWidth;
  const image = padded(x, info);
  const gradient = tf.reshape(dy, [positions, inChannels, outChannels / inChannels]);
  const sums: ReturnType<typeof tf.sum>[] = [];
  eachTap(info, (row, column) => {
    const under = tf.reshape(underTap(image, info, row, column), [positions, inChannels, 1]);
    sums.push(tf.sum(tf.mul(under, gradient), 0));
  });
  return tf.stack(sums);
});

/** A depthwise convolution of the gradient, dilated by the stride, with the flipped filter; one per multiple. */
export const depthwiseInputGradient = inputKernel(describe, (dy, filter, info) => {
  const { batchSize, outHeight, outWidth, inChannels, filterHeight, filterWidth } = info;
  const positions = batchSize * outHeight * outWidth;
  const multiples = info.outChannels / inChannels;
  const turned = tf.reverse(filter, [0, 1]);
  const all = tf.reshape(dy, [positions, inChannels, multiples]);
  const parts: Tensor4D[] = [];
  for (let multiple = 0; multiple < multiples; ++multiple) {
    const one = tf.slice(all, [0, 0, multiple], [positions, inChannels, 1]);
    const gradient = tf.reshape<Rank.R4>(one, [batchSize, outHeight, outWidth, inChannels]);
    const weights = tf.slice(
      turned,
      [0, 0, 0, multiple],
      [filterHeight, filterWidth, inChannels, 1],
    );
    parts.push(tf.depthwiseConv2d(spreadFor(gradient, info), weights, 1, 'valid'));
  }
  return tf.addN(parts);
});
