import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { after } from '../lib/time.js';

const day = 24 * 3600 * 1000;

describe('after', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([1, day, 2 ** 31 - 1, 2 ** 31, 30 * day, 4000 * day])('waits %i ms', (ms) => {
    // Node's own clock fires at once what is too long for it; that of the test does not.
    const set = vi.spyOn(globalThis, 'setTimeout');
    const what = vi.fn();
    after(ms, what);
    vi.advanceTimersByTime(ms - 1);
    expect(what).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(what).toHaveBeenCalledOnce();
    expect(Math.max(...set.mock.calls.map(([, each]) => each ?? 0))).toBeLessThan(2 ** 31);
  });

  it('is called off, at any time', () => {
    const what = vi.fn();
    const callOff = after(60 * day, what);
    vi.advanceTimersByTime(30 * day);
    callOff();
    vi.advanceTimersByTime(60 * day);
    expect(what).not.toHaveBeenCalled();
  });
});
