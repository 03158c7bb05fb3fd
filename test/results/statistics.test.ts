import { describe, expect, it } from 'vitest';

import { describe as summarize, medianInterval, percentile } from '../../lib/results/statistics.js';

const oneTo = (n: number): number[] => Array.from({ length: n }, (_, index) => index + 1);

describe('percentile', () => {
  it.each([
    [5, 95, 5],
    [20, 95, 19],
    [100, 95, 95],
    [100, 99, 99],
    [99, 99, 99],
    [200, 99, 198],
    [1, 50, 1],
    [100, 7, 7],
    [4, 25, 1],
    [4, 26, 2],
  ])('of 1..%i at %i %% is sample %i', (n, percent, expected) => {
    expect(percentile(oneTo(n), percent)).toBe(expected);
  });

  it('rejects what is no percentage', () => {
    expect(() => percentile([1], 0)).toThrow(RangeError);
    expect(() => percentile([1], 101)).toThrow(RangeError);
  });
});

describe('median interval', () => {
  // Ranks from the tables of the sign test (two-sided 5 %).
  it.each([
    [6, 1, 6, 0.96875],
    [8, 1, 8, 0.9921875],
    [9, 2, 8, 0.9609375],
    [10, 2, 9, 0.978515625],
    [12, 3, 10, 0.96142578125],
    [15, 4, 12, 0.96484375],
    [20, 6, 15, 0.9586105346679688],
    [25, 8, 18, 0.9567147493362427],
  ])('of %i samples is from number %i to %i', (n, lower, upper, confidence) => {
    const interval = medianInterval(oneTo(n));
    expect([interval.lowerSeconds, interval.upperSeconds]).toEqual([lower, upper]);
    expect(interval.confidence).toBeCloseTo(confidence, 10);
  });

  it('is the whole range, with its true coverage, where 95 % cannot be had', () => {
    expect(medianInterval(oneTo(5))).toEqual({
      lowerSeconds: 1,
      upperSeconds: 5,
      confidence: 0.9375,
    });
    expect(medianInterval([3, 4])).toEqual({ lowerSeconds: 3, upperSeconds: 4, confidence: 0.5 });
    expect(medianInterval([3])).toEqual({ lowerSeconds: 3, upperSeconds: 3, confidence: 0 });
  });

  it('stays within the samples and above 95 % for many of them', () => {
    for (const n of [100, 1000, 5000]) {
      const { lowerSeconds, upperSeconds, confidence } = medianInterval(oneTo(n));
      expect(lowerSeconds + upperSeconds).toBe(n + 1);
      expect(confidence).toBeGreaterThanOrEqual(0.95);
      // Half the width of the normal approximation is 0.98 sqrt(n).
      expect(Math.abs(upperSeconds - (n + 1) / 2 - 0.98 * Math.sqrt(n))).toBeLessThan(2);
    }
  });
});

describe('describe', () => {
  it('sorts, and takes the middle of the two middle samples', () => {
    const found = summarize([4, 1, 3, 2]);
    expect(found).toMatchObject({
      samples: 4,
      minSeconds: 1,
      medianSeconds: 2.5,
      p95Seconds: 4,
      p99Seconds: 4,
      maxSeconds: 4,
      meanSeconds: 2.5,
    });
  });

  it.each([[[]], [[1, Number.NaN]], [[Number.POSITIVE_INFINITY]], [[-1]]])(
    'rejects %o',
    (samples) => {
      expect(() => summarize(samples)).toThrow(RangeError);
    },
  );
});
