// The parts of an image under each tap of a convolution's filter.
import type { Tensor4D } from '@tensorflow/tfjs-core';

import { tf } from '../tfjs.js';

/** The used members of TensorFlow.js' description of a convolution. */
export type ConvInfo = ReturnType<typeof tf.backend_util.computeConv2DInfo>;

/** Calls back with row and column of each filter tap. */
export function eachTap(
  { filterHeight, filterWidth }: ConvInfo,
  visit: (row: number, column: number) => void,
): void {
  for (let row = 0; row < filterHeight; ++row) {
    for (let column = 0; column < filterWidth; ++column) visit(row, column);
  }
}

/** Pads with zeros, so that the filter stays within the image. */
export function padded(x: Tensor4D, info: ConvInfo): Tensor4D {
  const { top, left } = info.padInfo;
  const bottom = Math.max(
    0,
    reach(info.outHeight, info.strideHeight, info.filterHeight) - top - info.inHeight,
  );
  const right = Math.max(
    0,
    reach(info.outWidth, info.strideWidth, info.filterWidth) - left - info.inWidth,
  );
  if (top + left + bottom + right === 0) return x;
  return tf.pad4d(x, [
    [0, 0],
    [top, bottom],
    [left, right],
    [0, 0],
  ]);
}

/** The number of positions that the outputs' windows cover. */
export function reach(outputs: number, stride: number, taps: number): number {
  return (outputs - 1) * stride + taps;
}

/** The part of the padded image under one tap, of the output's size. */
export function underTap(image: Tensor4D, info: ConvInfo, row: number, column: number): Tensor4D {
  const { outHeight, outWidth, strideHeight, strideWidth, batchSize, inChannels } = info;
  if (strideHeight === 1 && strideWidth === 1) {
    return tf.slice4d(image, [0, row, column, 0], [batchSize, outHeight, outWidth, inChannels]);
  }
  return tf.stridedSlice(
    image,
    [0, row, column, 0],
    [
      batchSize,
      row + reach(outHeight, strideHeight, 1),
      column + reach(outWidth, strideWidth, 1),
      inChannels,
    ],
    [1, strideHeight, strideWidth, 1],
  ) as Tensor4D;
}

/**
 * Inserts `stride - 1` zeros after each row and column but the last, and pads or crops to the given size, for the
 * gradient of a strided convolution.
 */
export function spread(
  dy: Tensor4D,
  [strideHeight, strideWidth]: readonly [number, number],
  [top, left]: readonly [number, number],
  [height, width]: readonly [number, number],
): Tensor4D {
  const [batch, rows, columns, channels] = dy.shape;
  let out: Tensor4D = dy;
  if (strideHeight > 1) {
    const flat = tf.reshape(out, [batch, rows, 1, columns * channels]);
    const gap = tf.zeros([batch, rows, strideHeight - 1, columns * channels]);
    out = tf.reshape(tf.concat([flat, gap], 2), [batch, rows * strideHeight, columns, channels]);
  }
  if (strideWidth > 1) {
    const high = out.shape[1];
    const flat = tf.reshape(out, [batch * high, columns, 1, channels]);
    const gap = tf.zeros([batch * high, columns, strideWidth - 1, channels]);
    out = tf.reshape(tf.concat([flat, gap], 2), [batch, high, columns * strideWidth, channels]);
  }
  // Trailing zeros are cropped, or serve as padding.
  const crop = (have: number, before: number, want: number) => Math.min(have, want - before);
  const keepRows = crop(out.shape[1], top, height);
  const keepColumns = crop(out.shape[2], left, width);
  out = tf.slice4d(
    out,
    [0, Math.max(0, -top), Math.max(0, -left), 0],
    [batch, keepRows - Math.max(0, -top), keepColumns - Math.max(0, -left), channels],
  );
  return tf.pad4d(out, [
    [0, 0],
    [Math.max(0, top), height - Math.max(0, top) - out.shape[1]],
    [Math.max(0, left), width - Math.max(0, left) - out.shape[2]],
    [0, 0],
  ]);
}
