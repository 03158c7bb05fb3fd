// Gradients of a convolution from operations that the backend has.
import type { Tensor4D } from '@tensorflow/tfjs-core';

import { GradlinkError } from '../../errors.js';
import { tf } from '../tfjs.js';
import { filterKernel, inputKernel } from './gradient-kernel.js';
import type { ConvAttributes, Describe } from './gradient-kernel.js';
import { eachTap, padded, spread, underTap } from './patches.js';
import type { ConvInfo } from './patches.js';

const describe: Describe<ConvAttributes & { readonly dataFormat: 'NHWC' | 'NCHW' }> = (
  { strides, pad, dataFormat, dimRoundingMode },
  inputShape,
  filterShape,
) => {
  if (dataFormat !== 'NHWC') {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `gradient of a convolution: expected the data format NHWC, got ${dataFormat}`,
      { usable: true },
    );
  }
  const { computeConv2DInfo } = tf.backend_util;
  return computeConv2DInfo(inputShape, filterShape, strides, 1, pad, dimRoundingMode);
};

/** `dW[r, c, i, o] = Σ x[under tap r, c][…, i] · dy[…, o]`: one matrix product with the taps side by side. */
export const filterGradient = filterKernel(describe, (x, dy, info) => {
  const image = padded(x, info);
  const taps: Tensor4D[] = [];
  eachTap(info, (row, column) => taps.push(underTap(image, info, row, column)));
  const positions = info.batchSize * info.outHeight * info.outWidth;
  const side = tf.reshape(tf.concat(taps, 3), [positions, -1]);
  return tf.matMul(side, tf.reshape(dy, [positions, info.outChannels]), true);
});

/** A convolution of the gradient, dilated by the stride, with the flipped filter and swapped channels. */
export const inputGradient = inputKernel(describe, (dy, filter, info) => {
  const turned = tf.transpose(tf.reverse(filter, [0, 1]), [0, 1, 3, 2]);
  return tf.conv2d(spreadFor(dy, info), turned, 1, 'valid');
});

/** The gradient, padded for a convolution with stride 1 and no padding that gives the input's shape. */
export function spreadFor(dy: Tensor4D, info: ConvInfo): Tensor4D {
  const { filterHeight, filterWidth, padInfo } = info;
  return spread(
    dy,
    [info.strideHeight, info.strideWidth],
    [filterHeight - 1 - padInfo.top, filterWidth - 1 - padInfo.left],
    [info.inHeight + filterHeight - 1, info.inWidth + filterWidth - 1],
  );
}
