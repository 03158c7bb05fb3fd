// Gradients of a convolution, made of operations that the backend has.
import type { KernelFunc, Tensor4D } from '@tensorflow/tfjs-core';

import { GradlinkError } from '../../errors.js';
import { tf } from '../tfjs.js';
import { eachTap, padded, spread, underTap } from './patches.js';
import type { ConvInfo } from './patches.js';

interface ConvAttributes {
  readonly strides: [number, number] | number;
  readonly pad: Parameters<typeof tf.backend_util.computeConv2DInfo>[4];
  readonly dataFormat: 'NHWC' | 'NCHW';
  readonly dimRoundingMode?: 'floor' | 'round' | 'ceil';
}

function infoOf(
  attrs: ConvAttributes,
  inputShape: [number, number, number, number],
  filterShape: [number, number, number, number],
): ConvInfo {
  if (attrs.dataFormat !== 'NHWC') {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `gradient of a convolution: expected the data format NHWC, got ${attrs.dataFormat}`,
      { usable: true },
    );
  }
  return tf.backend_util.computeConv2DInfo(
    inputShape,
    filterShape,
    attrs.strides,
    1,
    attrs.pad,
    attrs.dimRoundingMode,
  );
}

/** `dW[r, c, i, o] = Σ x[under tap r, c][…, i] · dy[…, o]`: one product of matrices, the taps side by side. */
export const filterGradient: KernelFunc = ({ inputs, attrs }) => {
  const x = inputs['x'] as Tensor4D;
  const dy = inputs['dy'] as Tensor4D;
  const given = attrs as unknown as ConvAttributes & {
    filterShape: [number, number, number, number];
  };
  const info = infoOf(given, x.shape, given.filterShape);
  return tf.tidy(() => {
    const image = padded(x, info);
    const taps: Tensor4D[] = [];
    eachTap(info, (row, column) => taps.push(underTap(image, info, row, column)));
    const positions = info.batchSize * info.outHeight * info.outWidth;
    const side = tf.reshape(tf.concat(taps, 3), [positions, -1]);
    const product = tf.matMul(side, tf.reshape(dy, [positions, info.outChannels]), true);
    return tf.reshape(product, given.filterShape);
  });
};

/** A convolution of the gradient, spread by the stride, with the filter turned round and its channels exchanged. */
export const inputGradient: KernelFunc = ({ inputs, attrs }) => {
  const dy = inputs['dy'] as Tensor4D;
  const filter = inputs['filter'] as Tensor4D;
  const given = attrs as unknown as ConvAttributes & {
    inputShape: [number, number, number, number];
  };
  const info = infoOf(given, given.inputShape, filter.shape);
  return tf.tidy(() => {
    const turned = tf.transpose(tf.reverse(filter, [0, 1]), [0, 1, 3, 2]);
    return tf.conv2d(spreadFor(dy, info), turned, 1, 'valid');
  });
};

/** The gradient as a convolution with stride 1 and no padding of its own must find it to give the input's shape. */
export function spreadFor(dy: Tensor4D, info: ConvInfo): Tensor4D {
  const { filterHeight, filterWidth, padInfo } = info;
  return spread(
    dy,
    [info.strideHeight, info.strideWidth],
    [filterHeight - 1 - padInfo.top, filterWidth - 1 - padInfo.left],
    [info.inHeight + filterHeight - 1, info.inWidth + filterWidth - 1],
  );
}
