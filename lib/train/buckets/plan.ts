// Assigns gradients to buckets.
import { mebibyte } from '../../results/units.js';
import { argumentError } from '../../errors.js';
import { anInteger, anObject, having, listOf, maxInt32 } from '../../checks.js';
import { assignBySize } from './assign.js';
import type { BucketPlan, GradientSpec, ReducerOptions } from './types.js';

const bytesPerElement = 4;

/** PyTorch's values: a cap of 25 MiB, and a first bucket of 1 MiB unless a cap is given. */
export const defaultBucketCapBytes = 25 * mebibyte;
/** A small first bucket starts the reduction early. */
export const defaultFirstBucketBytes = mebibyte;

const gradientKind = having({ shape: listOf(anInteger(0, Number.MAX_SAFE_INTEGER)) });
export const gradientsKind = listOf(gradientKind);
const indicesKind = listOf(anInteger(0, maxInt32));
const bucketsKind = listOf(indicesKind);

/** The number of elements of a gradient. */
export function elementsOf(gradient: GradientSpec): number {
  gradientKind(gradient, 'gradient');
  return gradient.shape.reduce((product, length) => product * length, 1);
}

/** Caps of the first bucket and of the others. */
export function bucketLimits(
  options: Pick<ReducerOptions, 'bucketCapBytes' | 'firstBucketBytes'>,
): number[] {
  anObject(options, 'options');
  const { bucketCapBytes: cap = defaultBucketCapBytes } = options;
  const first =
    options.firstBucketBytes ??
    (options.bucketCapBytes === undefined ? defaultFirstBucketBytes : cap);
  for (const [name, bytes] of [
    ['bucketCapBytes', cap],
    ['firstBucketBytes', first],
  ] as const) {
    if (typeof bytes !== 'number' || !(bytes > 0)) {
      throw argumentError('ERR_OUT_OF_RANGE', name, 'a number of bytes above 0', bytes);
    }
  }
  return [first, cap];
}

/**
 * The buckets in order of reduction.
 *
 * @param limits see {@link bucketLimits}
 * @param order of the gradients; the reversed list when absent, roughly that of a backward pass
 */
export function planBuckets(
  gradients: readonly GradientSpec[],
  limits: readonly number[],
  order?: readonly number[],
): BucketPlan[] {
  gradientsKind(gradients, 'gradients');
  if (order !== undefined) indicesKind(order, 'order');
  const tensors = gradients.map((gradient) => ({ bytes: elementsOf(gradient) * bytesPerElement }));
  return assignBySize(tensors, limits, order ?? [...gradients.keys()].reverse()).map((members) =>
    bucketOf(gradients, members),
  );
}

/**
 * The buckets as given.
 *
 * @throws TypeError unless each gradient is in exactly one bucket.
 */
export function planGiven(
  gradients: readonly GradientSpec[],
  buckets: readonly (readonly number[])[],
): BucketPlan[] {
  gradientsKind(gradients, 'gradients');
  bucketsKind(buckets, 'buckets');
  const all = buckets.flat();
  if (
    all.length !== gradients.length ||
    new Set(all).size !== all.length ||
    all.some((index) => gradients[index] === undefined)
  ) {
    const expected = `each of the ${gradients.length} gradients in one bucket`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'buckets', expected, {
      text: `${all.length} in ${buckets.length}`,
    });
  }
  return buckets.map((members) => bucketOf(gradients, members));
}

function bucketOf(gradients: readonly GradientSpec[], members: readonly number[]): BucketPlan {
  const elements = members.reduce((sum, index) => sum + elementsOf(gradients[index]!), 0);
  return { gradients: members, elements, bytes: elements * bytesPerElement };
}
