// Means and variances over all ranks from those of each rank's batch.

/** Statistics of one batch, by channel. */
export interface Moments {
  readonly count: number;
  readonly mean: Float32Array | Float64Array;
  /** Sum of squared distances from `mean`. */
  readonly squares: Float32Array | Float64Array;
}

/** The summands of the ranks, in float64: subtracting the squared mean then loses no float32 digits. */
export function toSums({ count, mean, squares }: Moments): Float64Array<ArrayBuffer> {
  const channels = mean.length;
  const sums = new Float64Array(1 + 2 * channels);
  sums[0] = count;
  for (let c = 0; c < channels; ++c) {
    sums[1 + c] = count * mean[c]!;
    sums[1 + channels + c] = squares[c]! + count * mean[c]! * mean[c]!;
  }
  return sums;
}

export function fromSums(sums: Float64Array): Moments {
  const channels = (sums.length - 1) / 2;
  const count = sums[0]!;
  const mean = new Float64Array(channels);
  const squares = new Float64Array(channels);
  for (let c = 0; count > 0 && c < channels; ++c) {
    mean[c] = sums[1 + c]! / count;
    squares[c] = Math.max(0, sums[1 + channels + c]! - count * mean[c]! * mean[c]!);
  }
  return { count, mean, squares };
}
