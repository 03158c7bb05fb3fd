// Schedules: their float64 bits, which servers and workers share; the formulas; misuse.
import { createHash } from 'node:crypto';

import { describe, expect, it } from 'vitest';

import {
  CosineScheduler,
  FactorScheduler,
  FunctionScheduler,
  MultiFactorScheduler,
  PolyScheduler,
} from '../../lib/index.js';
import type { LRScheduler } from '../../lib/index.js';
import { native } from '../../lib/native/load.js';

/** A fingerprint of the bits of the rates at updates 0 to 200 and at 1e12. */
function bitsOf(scheduler: LRScheduler): string {
  const rates = Float64Array.from({ length: 202 }, (_, n) => scheduler.at(n <= 200 ? n : 1e12));
  return createHash('sha256').update(new Uint8Array(rates.buffer)).digest('hex').slice(0, 16);
}

const cosine = new CosineScheduler({ maxUpdate: 131 });
const warmup = { baseLr: 0.37, warmupSteps: 13, warmupBeginLr: 0.011 };
/** With the bits that they have had since 0.1: a job that goes on must see the rates it would have seen. */
const schedules: readonly (readonly [string, LRScheduler, string])[] = [
  ['factor', new FactorScheduler({ step: 7, factor: 0.93, baseLr: 0.3 }), '978306e837341cd6'],
  [
    'factor with a floor',
    new FactorScheduler({ step: 1, factor: 0.7, stopFactorLr: 0.01 }),
    'eefe5180c96e107f',
  ],
  [
    'factor after warm-up',
    new FactorScheduler({ step: 5, factor: 0.9, ...warmup }),
    '795e4832fc57b093',
  ],
  [
    'multi-factor',
    new MultiFactorScheduler({ steps: [20, 50, 51], factor: 0.13, ...warmup }),
    '987cf28d7356e1f6',
  ],
  ['poly', new PolyScheduler({ maxUpdate: 150, ...warmup }), 'a59a42228f82a812'],
  [
    'poly 0.9',
    new PolyScheduler({ maxUpdate: 150, power: 0.9, finalLr: 0.003, ...warmup }),
    'aab6d3a301a780ad',
  ],
  ['poly 3.7', new PolyScheduler({ maxUpdate: 97, power: 3.7, finalLr: 1e-7 }), 'ffc71dfe89397db0'],
  ['poly 100', new PolyScheduler({ maxUpdate: 97, power: 100 }), 'b07d5a98c5ab984a'],
  ['poly 1e6 + 0.5', new PolyScheduler({ maxUpdate: 97, power: 1e6 + 0.5 }), '54f3fa175bf1c4b8'],
  ['cosine', new CosineScheduler({ maxUpdate: 131 }), '04eabbac344e0481'],
  [
    'cosine after warm-up',
    new CosineScheduler({ maxUpdate: 131, finalLr: 0.02, ...warmup }),
    '426b894cb2d582fd',
  ],
  [
    'constant warm-up',
    new CosineScheduler({ maxUpdate: 99, ...warmup, warmupMode: 'constant' }),
    '1bcb0ece6ef775ef',
  ],
  [
    'a function that another is',
    new FunctionScheduler({ rate: (n) => cosine.at(n), updates: 131 }),
    '04eabbac344e0481',
  ],
];

describe.each(schedules)('%s', (_, scheduler, bits) => {
  it('keeps its bits', () => {
    expect(bitsOf(scheduler)).toBe(bits);
  });

  it('is what an optimizer goes by', () => {
    for (const numUpdate of [0, 1, 12, 13, 99, 200]) {
      const spec = { name: 'sgd', numbers: { beginNumUpdate: numUpdate } };
      const { NativeOptimizer } = native();
      const optimizer = new NativeOptimizer({ ...spec, scheduler: scheduler.spec() });
      expect(optimizer.learningRate()).toBe(scheduler.at(numUpdate));
    }
  });
});

it('a function is asked once for each update, and its last rate stays', () => {
  const asked: number[] = [];
  const scheduler = new FunctionScheduler({ rate: (n) => asked.push(n) / 2, updates: 3 });
  expect([0, 1, 2, 3, 4, 1e12].map((n) => scheduler.at(n))).toEqual([0.5, 1, 1.5, 2, 2, 2]);
  expect(asked).toEqual([0, 1, 2, 3]);
});

describe('misuse', () => {
  it.each<[() => LRScheduler, RegExp]>([
    [() => new FactorScheduler({ step: 0 }), / 1 .* step,.* 0$/],
    [() => new FactorScheduler({ step: 1, factor: 2 }), /at most 1 .*factor.* 2$/],
    [() => new FactorScheduler({ step: 1, factor: 0 }), /above 0 .*factor.* 0$/],
    [() => new MultiFactorScheduler({ steps: [] }), /steps/],
    [() => new MultiFactorScheduler({ steps: [3, 3] }), /above 3 .*steps\[1\].* 3$/],
    [
      () => new FunctionScheduler({ rate: (n) => 1 / n, updates: 3 }),
      /finite .*rate\(0\).*Infinity$/,
    ],
    [() => new FunctionScheduler({ rate: (n) => n, updates: 2 ** 20 + 1 }), /1048576 .*1048577$/],
    [() => new FunctionScheduler({ rate: (n) => n, updates: 0 }), /1.*updates.* 0$/],
    [() => new PolyScheduler({ maxUpdate: 5, power: 0 }), /above 0 .*power.* 0$/],
    [() => new CosineScheduler({ maxUpdate: 5, warmupSteps: 5 }), /warmupSteps, 5/],
    [
      () => new CosineScheduler({ maxUpdate: 5, warmupSteps: 2, warmupBeginLr: 1, baseLr: 0.5 }),
      /0\.5 .*warmupBeginLr.* 1$/,
    ],
    [
      () => new CosineScheduler({ maxUpdate: 5, warmupMode: 'cubic' as 'linear' }),
      /linear, constant.*warmupMode.*'cubic'/,
    ],
    [
      () => new CosineScheduler({ maxUpdate: 5, max: 3 } as { maxUpdate: number }),
      /CosineScheduler.*'max'/,
    ],
  ])('%# is an error that says what was expected', (make, message) => {
    expect(make).toThrow(message);
  });

  it('asking for no whole update is an error', () => {
    expect(() => new CosineScheduler({ maxUpdate: 5 }).at(1.5)).toThrow(/numUpdate.*1\.5/);
  });
});
