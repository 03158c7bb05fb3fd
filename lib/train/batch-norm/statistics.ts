// Means and variances over all ranks from those of each rank's own batch.

/** Of one batch, by channel. */
export interface Moments {
  readonly count: number;
  readonly mean: Float32Array | Float64Array;
  /** Squared distances from `mean`, summed. */
  readonly squares: Float32Array | Float64Array;
}

/** What ranks add up: float64, so that taking the squared mean off again costs nothing that float32 would show. */
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

/** Of all batches together. */
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
