// Schedules: TypeScript and native code give the same float64 bits; the formulas; misuse.
import { describe, expect, it } from 'vitest';

import {
  CosineScheduler,
  FactorScheduler,
  MultiFactorScheduler,
  PolyScheduler,
} from '../../lib/index.js';
import type { LRScheduler } from '../../lib/index.js';
import { native } from '../../lib/native/load.js';

/** The rate that native code has after `numUpdate` updates. */
function nativeAt(scheduler: LRScheduler, numUpdate: number): number {
  const { NativeOptimizer } = native();
  const spec = {
    name: 'sgd',
    numbers: { beginNumUpdate: numUpdate },
    scheduler: scheduler.spec(),
  };
  return new NativeOptimizer(spec).learningRate();
}

const warmup = { baseLr: 0.37, warmupSteps: 13, warmupBeginLr: 0.011 };
const schedules: readonly (readonly [string, LRScheduler])[] = [
  ['factor', new FactorScheduler({ step: 7, factor: 0.93, baseLr: 0.3 })],
  ['factor with a floor', new FactorScheduler({ step: 1, factor: 0.7, stopFactorLr: 0.01 })],
  ['factor after warm-up', new FactorScheduler({ step: 5, factor: 0.9, ...warmup })],
  ['multi-factor', new MultiFactorScheduler({ steps: [20, 50, 51], factor: 0.13, ...warmup })],
  ['poly', new PolyScheduler({ maxUpdate: 150, ...warmup })],
  ['poly 0.9', new PolyScheduler({ maxUpdate: 150, power: 0.9, finalLr: 0.003, ...warmup })],
  ['poly 3.7', new PolyScheduler({ maxUpdate: 97, power: 3.7, finalLr: 1e-7 })],
  ['poly 100', new PolyScheduler({ maxUpdate: 97, power: 100 })],
  ['poly 1e6 + 0.5', new PolyScheduler({ maxUpdate: 97, power: 1e6 + 0.5 })],
  ['cosine', new CosineScheduler({ maxUpdate: 131 })],
  ['cosine after warm-up', new CosineScheduler({ maxUpdate: 131, finalLr: 0.02, ...warmup })],
  ['constant warm-up', new CosineScheduler({ maxUpdate: 99, ...warmup, warmupMode: 'constant' })],
];

describe.each(schedules)('%s', (_, scheduler) => {
  it('gives the same bits natively', () => {
    for (let n = 0; n <= 200; n += 1) expect(nativeAt(scheduler, n)).toBe(scheduler.at(n));
    expect(nativeAt(scheduler, 1e12)).toBe(scheduler.at(1e12));
  });
});

describe('formulas', () => {
  it('poly and cosine', () => {
    const span = { maxUpdate: 110, baseLr: 0.5, finalLr: 0.1, warmupSteps: 10 };
    const cosine = new CosineScheduler(span);
    for (const power of [0.5, 1, 2, 0.9, 5.25]) {
      const poly = new PolyScheduler({ ...span, power });
      for (let n = 10; n <= 110; n += 1) {
        expect(poly.at(n)).toBeCloseTo(0.1 + 0.4 * (1 - (n - 10) / 100) ** power, 14);
      }
      expect(poly.at(110)).toBe(0.1);
      expect(poly.at(1000)).toBe(0.1);
    }
    for (let n = 10; n <= 110; n += 1) {
      const share = (1 + Math.cos((Math.PI * (n - 10)) / 100)) / 2;
      expect(cosine.at(n)).toBeCloseTo(0.1 + 0.4 * share, 14);
    }
    expect([cosine.at(10), cosine.at(110), cosine.at(111)]).toEqual([0.5, 0.1, 0.1]);
  });

  it('factor drops after a period, multi-factor after each listed update', () => {
    const factor = new FactorScheduler({ step: 10, factor: 0.5, baseLr: 1 });
    expect([0, 1, 10, 11, 20, 21].map((n) => factor.at(n))).toEqual([1, 1, 1, 0.5, 0.5, 0.25]);
    const multi = new MultiFactorScheduler({ steps: [5, 7], factor: 0.5, baseLr: 8 });
    expect([5, 6, 7, 8, 99].map((n) => multi.at(n))).toEqual([8, 4, 4, 2, 2]);
  });

  it('warms up evenly from the begin rate to the base rate', () => {
    const scheduler = new FactorScheduler({
      step: 100,
      baseLr: 1,
      warmupSteps: 4,
      warmupBeginLr: 0.5,
    });
    expect([0, 1, 2, 3, 4].map((n) => scheduler.at(n))).toEqual([0.5, 0.625, 0.75, 0.875, 1]);
  });
});

describe('misuse', () => {
  it.each<[() => LRScheduler, string]>([
    [() => new FactorScheduler({ step: 0 }), 'an integer of at least 1 for step, got 0'],
    [() => new FactorScheduler({ step: 1, factor: 2 }), 'at most 1 for factor, got 2'],
    [() => new FactorScheduler({ step: 1, factor: 0 }), 'above 0 for factor, got 0'],
    [() => new MultiFactorScheduler({ steps: [] }), 'ascending integers'],
    [() => new MultiFactorScheduler({ steps: [3, 3] }), 'an integer above 3 for steps[1], got 3'],
    [() => new PolyScheduler({ maxUpdate: 5, power: 0 }), 'above 0 for power'],
    [() => new CosineScheduler({ maxUpdate: 5, warmupSteps: 5 }), 'above warmupSteps, 5'],
    [
      () => new CosineScheduler({ maxUpdate: 5, warmupSteps: 2, warmupBeginLr: 1, baseLr: 0.5 }),
      'at most the base rate, 0.5 for warmupBeginLr, got 1',
    ],
    [
      () => new CosineScheduler({ maxUpdate: 5, warmupMode: 'cubic' as 'linear' }),
      "'linear' or 'constant' for warmupMode, got 'cubic'",
    ],
    [
      () => new CosineScheduler({ maxUpdate: 5, max: 3 } as { maxUpdate: number }),
      "for options of CosineScheduler, got 'max'",
    ],
  ])('%# is an error that says what was expected', (make, message) => {
    expect(make).toThrow(message);
  });

  it('asking for no whole update is an error', () => {
    expect(() => new CosineScheduler({ maxUpdate: 5 }).at(1.5)).toThrow('for numUpdate, got 1.5');
  });
});
