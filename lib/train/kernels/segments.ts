// The gradient of a gather, which is an embedding.
import type { KernelFunc, Tensor } from '@tensorflow/tfjs-core';

import { GradlinkError } from '../../errors.js';
import { tf } from '../tfjs.js';

/**
 * Sums rows by segment; rows with an invalid segment are skipped. Works on values, because a product with a one-hot
 * matrix would need rows × segments.
 */
export const unsortedSegmentSum: KernelFunc = ({ inputs, attrs }) => {
  const x = inputs['x'] as Tensor;
  const segmentIds = inputs['segmentIds'] as Tensor;
  const { numSegments } = attrs as unknown as { numSegments: number };
  if (segmentIds.rank !== 1) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `unsortedSegmentSum: expected segment ids of one dimension, got ${segmentIds.rank}`,
      { usable: true },
    );
  }
  const rows = segmentIds.size;
  const width = rows === 0 ? 0 : x.size / rows;
  const values = x.dataSync();
  const ids = segmentIds.dataSync();
  const sums = new Float32Array(numSegments * width);
  for (let row = 0; row < rows; ++row) {
    const segment = ids[row]!;
    if (!(segment >= 0 && segment < numSegments)) continue;
    const from = row * width;
    const to = segment * width;
    for (let i = 0; i < width; ++i) sums[to + i]! += values[from + i]!;
  }
  return tf.tensor(sums, [numSegments, ...x.shape.slice(1)], x.dtype);
};
