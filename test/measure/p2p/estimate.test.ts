// How long a run of `gradlink p2p` will take.
import { describe, expect, it } from 'vitest';

import { figureSeconds, secondsLeft } from '../../../lib/measure/p2p/estimate.js';

describe('the guess before a run', () => {
  it('grows with bytes, copies and lanes, and falls with the rate', () => {
    const work = { bytes: 2 ** 29, copies: 52, lanes: 1, bytesPerSecond: 25e9 };
    const seconds = figureSeconds(work);
    // 52 copies of 512 MiB at 25 GB/s take 1.117 s, the array 0.134 s.
    expect(seconds).toBeCloseTo(1.251, 3);
    expect(figureSeconds({ ...work, copies: 104 })).toBeCloseTo(2.368, 3);
    expect(figureSeconds({ ...work, lanes: 2 })).toBeCloseTo(1.385, 3);
    expect(figureSeconds({ ...work, bytesPerSecond: 50e9 })).toBeLessThan(seconds);
    expect(figureSeconds({ ...work, bytesPerSecond: undefined })).toBeGreaterThan(seconds);
  });
});

describe('what is left', () => {
  const guessed = [1, 1, 2, 4];
  it('is the guess before anything is done', () => {
    expect(secondsLeft(guessed, 0, 0)).toBe(8);
  });

  it('follows what was done took, the more the more that was', () => {
    expect(secondsLeft(guessed, 2, 2)).toBeCloseTo(6, 9);
    // Three times the guess: a quarter of the whole counts as guessed.
    expect(secondsLeft(guessed, 2, 6)).toBe(12);
    expect(secondsLeft(guessed, 3, 12)).toBeCloseTo((4 * 14) / 6, 9);
    expect(secondsLeft(guessed, 4, 9)).toBe(0);
  });

  it('takes what starting costs for no rate', () => {
    expect(secondsLeft([0, 3], 1, 5)).toBe(3);
    // The first of 17 guessed seconds took 4.
    expect(secondsLeft([0.3, 16.7], 1, 4)).toBeCloseTo(30.3, 1);
  });
});
