// How gradients are dealt out to buckets: what PyTorch gives for ResNet-50, whose 161 gradients hold every case.
import { describe, expect, it } from 'vitest';

import { resnet50Gradients, releaseShares } from '../../lib/measure/ddp/timetable.js';
import {
  assignBeforeOverflow,
  assignBySize,
  bucketLimits,
  elementsOf,
  planBuckets,
  planGiven,
} from '../../lib/train/buckets/index.js';

const mebibyte = 2 ** 20;
const gradients = resnet50Gradients();
const tensors = gradients.map((gradient) => ({ bytes: 4 * elementsOf(gradient) }));

/** Bytes and number of tensors of each bucket. */
function summary(buckets: readonly (readonly number[])[]): [number, number][] {
  return buckets.map((members) => [
    members.reduce((sum, index) => sum + tensors[index]!.bytes, 0),
    members.length,
  ]);
}

describe('buckets that close behind the tensor that fills them', () => {
  it.each([
    [[1, 25], '8196000:2 31502336:15 26255360:12 26550272:51 9724160:81'],
    [[25], '30257056:14 26255360:12 28366848:39 17348864:96'],
  ])('hold what PyTorch puts in them with limits of %j MiB', (limits, expected) => {
    const plan = planBuckets(
      gradients,
      limits.map((limit) => limit * mebibyte),
    );
    const found = plan.map(({ bytes, gradients: members }) => `${bytes}:${members.length}`);
    expect(found.join(' ')).toBe(expected);
    expect(plan.map(({ elements }) => 4 * elements)).toEqual(plan.map(({ bytes }) => bytes));
  });

  it('are sorted by their first tensor when no order was given', () => {
    const forward = assignBySize(tensors, [mebibyte, 25 * mebibyte]);
    expect(summary(forward.reverse())).toEqual([
      [12410784, 7],
      [31502336, 15],
      [29669376, 24],
      [27022336, 78],
      [1623296, 37],
    ]);
    const mixed = ['a', 'b', 'b', 'a'].map((kind) => ({ bytes: 4, kind }));
    expect(assignBySize(mixed, [8])).toEqual([
      [0, 3],
      [1, 2],
    ]);
  });

  it('keep kinds apart, each with its own way through the limits, and sparse ones alone', () => {
    const list = [
      { bytes: 8, kind: 'float32' },
      { bytes: 8, kind: 'float64' },
      { bytes: 8, kind: 'float32' },
      { bytes: 8, kind: 'float32', sparse: true },
      { bytes: 8, kind: 'float64' },
      { bytes: 8, kind: 'float32' },
    ];
    expect(assignBySize(list, [8, 16], [0, 1, 2, 3, 4, 5])).toEqual([[0], [1], [3], [2, 5], [4]]);
  });

  it('begin with 1 MiB unless a cap is named', () => {
    expect(bucketLimits({})).toEqual([mebibyte, 25 * mebibyte]);
    expect(bucketLimits({ bucketCapBytes: 100 })).toEqual([100, 100]);
    expect(bucketLimits({ bucketCapBytes: 100, firstBucketBytes: 10 })).toEqual([10, 100]);
    expect(planBuckets(gradients, bucketLimits({ bucketCapBytes: Infinity }))).toHaveLength(1);
    expect(() => bucketLimits({ bucketCapBytes: 0 })).toThrow(/bucketCapBytes, got 0/);
  });

  it('may be given by others, who forget none and name none twice', () => {
    const three = [2, 3, 4].map((length) => ({ name: `g${length}`, shape: [length] }));
    expect(planGiven(three, [[2], [0, 1]]).map(({ elements }) => elements)).toEqual([4, 5]);
    expect(() => planGiven(three, [[0], [1]])).toThrow(/\b3 gradients .*buckets, got 2 in 2/);
    expect(() => planGiven(three, [[0, 1], [1]])).toThrow(/\b3 gradients .*buckets, got 3 in 2/);
  });
});

describe('buckets that close before they overflow', () => {
  const sizes = gradients.map(elementsOf);

  it('hold what PythonDDP puts in them', () => {
    const buckets = assignBeforeOverflow(sizes, 3 * mebibyte);
    expect(buckets.map((members) => members.reduce((sum, i) => sum + sizes[i]!, 0))).toEqual([
      2957376, 3087360, 3023872, 2360320, 1052672, 2101248, 1049600, 2360320, 2102272, 2360320,
      3101672,
    ]);
  });

  it('cannot hold a tensor that is larger', () => {
    expect(() => assignBeforeOverflow(sizes, 2 * mebibyte)).toThrow(
      /at least 2359296 for capacity/,
    );
  });
});

describe("the timetable of resnet50's gradients", () => {
  it('has 161 of them with the published bytes, released from the last layer to the first', () => {
    expect(gradients).toHaveLength(161);
    expect(tensors.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(102_228_128);
    const shares = releaseShares(gradients);
    expect(shares[0]).toBe(1);
    expect(shares.every((share, index) => index === 0 || share <= shares[index - 1]!)).toBe(true);
    // The classifier's bias comes first, with nothing multiplied for it.
    expect(shares.at(-1)).toBe(0);
    // The last stage has 15 of 25 million weights and, like each stage, about a quarter of the work.
    const stage4 = gradients.findIndex(({ name }) => name === 'layer4.0.conv1.weight');
    expect(shares[stage4]).toBeGreaterThan(0.15);
    expect(shares[stage4]).toBeLessThan(0.3);
  });
});
