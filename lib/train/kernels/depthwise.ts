// Gradients of a depthwise convolution, made of operations that the backend has.
import type { KernelFunc, Rank, Tensor4D } from '@tensorflow/tfjs-core';

import { tf } from '../tfjs.js';
import { spreadFor } from './convolution.js';
import { eachTap, padded, underTap } from './patches.js';
import type { ConvInfo } from './patches.js';

interface DepthwiseAttributes {
  readonly strides: [number, number] | number;
  readonly dilations: [number, number] | number;
  readonly pad: Parameters<typeof tf.backend_util.computeConv2DInfo>[4];
  readonly dimRoundingMode?: 'floor' | 'round' | 'ceil';
}

function infoOf(
  attrs: DepthwiseAttributes,
  inputShape: [number, number, number, number],
  filterShape: [number, number, number, number],
): ConvInfo {
  const { strides, dilations, pad, dimRoundingMode } = attrs;
  return tf.backend_util.computeConv2DInfo(
    inputShape,
    filterShape,
    strides,
    dilations,
    pad,
    dimRoundingMode,
    true,
  );
}

/** `dW[r, c, i, m] = Σ x[under tap r, c][…, i] · dy[…, i · multiplier + m]`. */
export const depthwiseFilterGradient: KernelFunc = ({ inputs, attrs }) => {
  const x = inputs['x'] as Tensor4D;
  const dy = inputs['dy'] as Tensor4D;
  const given = attrs as unknown as DepthwiseAttributes & {
    filterShape: [number, number, number, number];
  };
  const info = infoOf(given, x.shape, given.filterShape);
  const { inChannels, outChannels } = info;
  const positions = info.batchSize * info.outHeight * info.outWidth;
  return tf.tidy(() => {
    const image = padded(x, info);
    const gradient = tf.reshape(dy, [positions, inChannels, outChannels / inChannels]);
    const sums: ReturnType<typeof tf.sum>[] = [];
    eachTap(info, (row, column) => {
      const under = tf.reshape(underTap(image, info, row, column), [positions, inChannels, 1]);
      sums.push(tf.sum(tf.mul(under, gradient), 0));
    });
    return tf.reshape(tf.stack(sums), given.filterShape);
  });
};

/** A depthwise convolution of the gradient, spread by the stride, with the filter turned round; one a multiple. */
export const depthwiseInputGradient: KernelFunc = ({ inputs, attrs }) => {
  const dy = inputs['dy'] as Tensor4D;
  const filter = inputs['filter'] as Tensor4D;
  const given = attrs as unknown as DepthwiseAttributes & {
    inputShape: [number, number, number, number];
  };
  const info = infoOf(given, given.inputShape, filter.shape);
  const { batchSize, outHeight, outWidth, inChannels, filterHeight, filterWidth } = info;
  const positions = batchSize * outHeight * outWidth;
  const multiples = info.outChannels / inChannels;
  return tf.tidy(() => {
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
};
