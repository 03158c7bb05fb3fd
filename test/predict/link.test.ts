import { describe, expect, it } from 'vitest';

import { nonNegativeLeastSquares } from '../../lib/predict/least-squares.js';
import {
  fitLink,
  latencySeconds,
  messageSeconds,
  plainLink,
  predictUnseen,
  streamSeconds,
  type Point,
} from '../../lib/predict/link.js';
import { linkOfSweep } from '../../lib/predict/sweep-link.js';
import { madeRun, uniform } from '../support/comparing.js';
import { report, storeCase } from '../support/reports.js';

const sizes = Array.from({ length: 21 }, (_, power) => 8 * 2 ** power);

/** Two regimes: 2 us and 5 GB/s up to 64 kB, then 10 us and 20 GB/s. */
function twoRegimes(bytes: number): number {
  return bytes < 65536 ? 2e-6 + bytes / 5e9 : 10e-6 + bytes / 20e9;
}

function points(time: (bytes: number) => number): Point[] {
  return sizes.map((bytes) => ({ bytes, seconds: time(bytes) }));
}

describe('least squares without negative coefficients', () => {
  it('finds what exactly fits', () => {
    const rows = [1, 2, 3, 7].map((x) => [1, x, x * x]);
    const { coefficients } = nonNegativeLeastSquares(
      rows,
      rows.map(([a, b, c]) => 2 * a! + 3 * b! + 0.5 * c!),
    );
    expect(coefficients[0]).toBeCloseTo(2, 8);
    expect(coefficients[1]).toBeCloseTo(3, 8);
    expect(coefficients[2]).toBeCloseTo(0.5, 8);
  });

  it('leaves out a term that would have to be negative', () => {
    const { coefficients } = nonNegativeLeastSquares(
      [
        [1, 1],
        [1, 2],
        [1, 3],
      ],
      [3, 2, 1],
    );
    expect(coefficients).toEqual([2, 0]);
  });

  it('weighs', () => {
    const { coefficients } = nonNegativeLeastSquares([[1], [1]], [1, 2], [3, 1]);
    expect(coefficients[0]).toBeCloseTo(1.25, 12);
  });
});

describe('a link', () => {
  it('tells small and large regimes, with their latency and rate', () => {
    const { regimes } = fitLink(points(twoRegimes));
    expect(regimes).toHaveLength(2);
    expect(regimes[0]).toMatchObject({ fromBytes: 0 });
    expect(regimes[0]!.alphaSeconds).toBeCloseTo(2e-6, 9);
    expect(1 / regimes[0]!.betaSecondsPerByte / 1e9).toBeCloseTo(5, 6);
    expect(regimes[0]!.toBytes).toBeCloseTo(Math.sqrt(32768 * 65536), 3);
    expect(regimes[1]!.alphaSeconds).toBeCloseTo(10e-6, 8);
    expect(1 / regimes[1]!.betaSecondsPerByte / 1e9).toBeCloseTo(20, 6);
    expect(regimes[1]!.toBytes).toBe(Infinity);
  });

  it('is as measured at measured sizes, and goes on at the last rate', () => {
    const link = fitLink(points(twoRegimes));
    for (const bytes of sizes) {
      expect(messageSeconds(link, bytes) / twoRegimes(bytes)).toBeCloseTo(1, 12);
    }
    expect(messageSeconds(link, 2 ** 30) / twoRegimes(2 ** 30)).toBeCloseTo(1, 6);
    expect(messageSeconds(link, 1)).toBe(twoRegimes(8));
    expect(latencySeconds(link)).toBe(twoRegimes(8));
    expect(streamSeconds(link, 1)).toBe(0);
  });

  it('predicts sizes that it has not seen, scatter and caches included', () => {
    const random = uniform(5);
    const noisy = points((bytes) => {
      const rate = bytes < 2 ** 20 ? 12e9 : 4e9;
      return (2e-6 + bytes / rate) * (1 + 0.1 * random());
    });
    const held = predictUnseen(noisy);
    expect(held).toHaveLength(10);
    expect(fitLink(noisy).unseenError).toBeLessThan(0.15);
    expect(held.some(({ error }) => error !== 0)).toBe(true);
  });

  it('needs three sizes', () => {
    const two = points(twoRegimes).slice(0, 2);
    expect(() => fitLink([...two, ...two])).toThrow(/at least 3 sizes/);
    expect(predictUnseen(points(twoRegimes).slice(0, 4))).toEqual([]);
  });

  it('can be given', () => {
    const link = plainLink(20e-6, 10e9);
    expect(messageSeconds(link, 1e6)).toBeCloseTo(120e-6, 12);
    expect(streamSeconds(link, 1e6)).toBeCloseTo(100e-6, 12);
    const [first] = link.regimes;
    const regimes = [
      { ...first!, toBytes: 1e6 },
      { ...first!, fromBytes: 1e6, alphaSeconds: 0 },
    ];
    expect(messageSeconds({ ...link, regimes }, 1e6)).toBeCloseTo(100e-6, 12);
  });
});

describe('the link of a sweep', () => {
  it('is that of the messages of a ring', () => {
    const run = madeRun({ seed: 1, scatter: 0, sizes: [1024, 65536, 1 << 20] });
    const link = linkOfSweep(run, 'run.json');
    expect(link).toMatchObject({ collective: 'all_reduce', ranks: 2 });
    // Two ranks: two messages of half the size each.
    const whole = 5e-6 + 65536 * 4e-10;
    expect(link.points[1]!.bytes).toBe(65536 * 2);
    expect(link.points[1]!.seconds).toBeCloseTo(whole / 2, 12);
  });

  it('refuses a report without one', () => {
    expect(() => linkOfSweep(report('measure', [storeCase()]), 'run.json')).toThrow(
      /all_reduce.*run\.json.*kvstore/,
    );
    const two = madeRun({ seed: 1, sizes: [1024, 4096] });
    expect(() => linkOfSweep(two, 'run.json')).toThrow(/3 sizes .*run\.json.* 2/);
  });
});
