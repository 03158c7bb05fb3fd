// The common part of convolution gradients: inputs, attributes, and the convolution that they describe.
import type { KernelFunc, Tensor, Tensor4D } from '@tensorflow/tfjs-core';

import { tf } from '../tfjs.js';
import type { ConvInfo } from './patches.js';

export type Shape4D = Tensor4D['shape'];

/** Common attributes. */
export interface ConvAttributes {
  readonly strides: [number, number] | number;
  readonly pad: Parameters<typeof tf.backend_util.computeConv2DInfo>[4];
  readonly dimRoundingMode?: 'floor' | 'round' | 'ceil';
}

/** The convolution described by a kernel's attributes of type `A`. */
export type Describe<A> = (attrs: A, inputShape: Shape4D, filterShape: Shape4D) => ConvInfo;

/** The filter's gradient from the image and the output's gradient; disposes intermediate tensors. */
export function filterKernel<A extends ConvAttributes>(
  describe: Describe<A>,
  gradient: (x: Tensor4D, dy: Tensor4D, info: ConvInfo) => Tensor,
): KernelFunc {
  return ({ inputs, attrs }) => {
    const x = inputs['x'] as Tensor4D;
    const dy = inputs['dy'] as Tensor4D;
    const given = attrs as unknown as A & { readonly filterShape: Shape4D };
    const info = describe(given, x.shape, given.filterShape);
    return tf.tidy(() => tf.reshape(gradient(x, dy, info), given.filterShape));
  };
}

/** The image's gradient from the output's gradient and the filter. */
export function inputKernel<A extends ConvAttributes>(
  describe: Describe<A>,
  gradient: (dy: Tensor4D, filter: Tensor4D, info: ConvInfo) => Tensor,
): KernelFunc {
  return ({ inputs, attrs }) => {
    const dy = inputs['dy'] as Tensor4D;
    const filter = inputs['filter'] as Tensor4D;
    const given = attrs as unknown as A & { readonly inputShape: Shape4D };
    const info = describe(given, given.inputShape, filter.shape);
    return tf.tidy(() => gradient(dy, filter, info));
  };
}
