// What all optimizers share: names, options, rates, states, arguments.
import { describe, expect, it } from 'vitest';

import {
  CosineScheduler,
  createOptimizer,
  FactorScheduler,
  MultiFactorScheduler,
  optimizerNames,
  PolyScheduler,
  SGD,
} from '../../lib/index.js';
import type { LRScheduler, Optimizer, OptimizerOptions } from '../../lib/index.js';
import { native } from '../../lib/native/load.js';

function error(body: () => unknown): { name: string; code: unknown; message: string } {
  try {
    body();
  } catch (thrown) {
    const { name, message, code } = thrown as Error & { code?: unknown };
    return { name, code, message };
  }
  throw new Error('nothing was thrown');
}

describe('creating', () => {
  it.each(optimizerNames)('makes %s by name, in any case', (name) => {
    const optimizer = createOptimizer(name.toUpperCase());
    expect(optimizer.name).toBe(name === 'nag' ? 'sgd' : name);
    const weight = Float32Array.of(1, 2, 3);
    optimizer.update(0, weight, Float32Array.of(1, -1, 0.5));
    expect(weight).not.toEqual(Float32Array.of(1, 2, 3));
  });

  it('knows every optimizer that the addon has', () => {
    const known = native()
      .optimizerDefinitions()
      .map(({ name }) => name);
    expect(optimizerNames.filter((name) => name !== 'nag')).toEqual(known);
  });

  it('has the defaults that are documented', () => {
    const fallbacks = Object.fromEntries(
      native()
        .optimizerDefinitions()
        .map(({ name, options }) => [
          name,
          Object.fromEntries(options.map((option) => [option.name, option.fallback])),
        ]),
    );
    expect(fallbacks['lamb']).toEqual({
      learningRate: 0.001,
      wd: 0,
      rescaleGrad: 1,
      clipGradient: null,
      beginNumUpdate: 0,
      multiPrecision: 0,
      beta1: 0.9,
      beta2: 0.999,
      epsilon: 1e-6,
      lowerBound: null,
      upperBound: null,
      biasCorrection: 1,
    });
    expect(new SGD().learningRate).toBe(0.01);
    expect(createOptimizer('ftrl').learningRate).toBe(0.1);
  });

  it('lists the names when there is none of that name', () => {
    expect(error(() => createOptimizer('sdg'))).toEqual({
      name: 'TypeError',
      code: 'ERR_INVALID_ARG_VALUE',
      message: expect.stringMatching(
        new RegExp(` ${[...optimizerNames].sort().join(', ')} .*optimizer.*'sdg'`),
      ) as string,
    });
    expect(error(() => createOptimizer('toString')).code).toBe('ERR_INVALID_ARG_VALUE');
  });

  it.each<[OptimizerOptions & Record<string, unknown>, string, RegExp]>([
    [{ momentun: 0.9 }, 'TypeError', /sgd.*'momentun'/],
    [{ momentum: '0.9' }, 'TypeError', / momentum.*'0\.9'/],
    [{ momentum: Infinity }, 'RangeError', / momentum.*Infinity/],
    [{ learningRate: NaN }, 'RangeError', /learningRate.*NaN/],
    [{ clipGradient: -1 }, 'RangeError', / 0 .*clipGradient.*-1/],
    [{ nesterov: 1 }, 'TypeError', /nesterov.* 1$/],
    [{ beginNumUpdate: 1.5 }, 'RangeError', / 0 .*beginNumUpdate.*1\.5/],
    [{ lrMult: { a: Infinity } }, 'RangeError', /lrMult\['a'\].*Infinity/],
    [{ lrScheduler: 'cosine' as unknown as CosineScheduler }, 'TypeError', /lrScheduler.*'cosine'/],
  ])('refuses %j', (options, name, message) => {
    const thrown = error(() => createOptimizer('sgd', options));
    expect(thrown.name).toBe(name);
    expect(thrown.message).toMatch(message);
  });

  it('takes null for no bound', () => {
    expect(createOptimizer('sgd', { clipGradient: null }).spec.numbers).not.toHaveProperty(
      'clipGradient',
    );
  });
});

describe('the rate', () => {
  const stepOf = (optimizer: Optimizer): number => {
    const weight = Float64Array.of(0);
    optimizer.update(0, weight, Float64Array.of(-1));
    return weight[0]!;
  };

  it('can be changed between updates and is what a store would take', () => {
    const optimizer = new SGD({ learningRate: 0.5 });
    expect(stepOf(optimizer)).toBe(0.5);
    optimizer.learningRate = 0.25;
    expect(optimizer.learningRate).toBe(0.25);
    expect(optimizer.spec.numbers['learningRate']).toBe(0.25);
    expect(stepOf(optimizer)).toBe(0.25);
    optimizer.rescaleGrad = 2;
    expect(stepOf(optimizer)).toBe(0.5);
  });

  it('follows a schedule, which then may not be overruled', () => {
    const lrScheduler = new CosineScheduler({ maxUpdate: 4, baseLr: 1 });
    const optimizer = new SGD({ lrScheduler });
    const steps = Array.from({ length: 5 }, () => stepOf(optimizer));
    expect(steps).toEqual([1, 2, 3, 4, 5].map((n) => lrScheduler.at(n)));
    expect(optimizer.learningRate).toBe(lrScheduler.at(5));
    expect(error(() => (optimizer.learningRate = 1)).message).toContain('lrScheduler decides');
  });

  // The rates at the first update that MXNet 1.9.1 gives; a warm-up rises to the schedule's own rate.
  it.each([
    ['sgd', { learningRate: 2 }, { factor: 2, cosine: 3 }],
    ['sgd', {}, { factor: 3, cosine: 3 }],
    ['nag', {}, { factor: 3, cosine: 3 }],
    ['lars', {}, { factor: 3, cosine: 3 }],
    ['adagrad', {}, { factor: 3, cosine: 3 }],
    ['adadelta', {}, { factor: 3, cosine: 3 }],
    ['adam', {}, { factor: 0.001, cosine: 3 }],
    ['adamw', {}, { factor: 0.001, cosine: 3 }],
    ['lamb', {}, { factor: 0.001, cosine: 3 }],
    ['rmsprop', {}, { factor: 0.001, cosine: 3 }],
    ['signum', {}, { factor: 0.01, cosine: 3 }],
    ['ftrl', {}, { factor: 0.1, cosine: 3 }],
    ['adam', { learningRate: 0.5 }, { factor: 0.5, cosine: 3 }],
  ])('%s with %j starts from the rate that MXNet takes', (name, given, expected) => {
    const rate = (lrScheduler: LRScheduler): number =>
      createOptimizer(name, { ...given, lrScheduler }).learningRate;
    expect(rate(new FactorScheduler({ step: 100, baseLr: 3 }))).toBe(expected.factor);
    expect(rate(new MultiFactorScheduler({ steps: [100], baseLr: 3 }))).toBe(expected.factor);
    expect(rate(new CosineScheduler({ maxUpdate: 100, baseLr: 3 }))).toBe(expected.cosine);
    expect(rate(new PolyScheduler({ maxUpdate: 100, baseLr: 3 }))).toBe(expected.cosine);
  });

  it("warms up to the schedule's own rate and decays from the optimizer's", () => {
    const lrScheduler = new FactorScheduler({ step: 100, baseLr: 8, warmupSteps: 4 });
    const optimizer = new SGD({ learningRate: 1, lrScheduler });
    const steps = Array.from({ length: 5 }, () => stepOf(optimizer));
    expect(steps).toEqual([2, 4, 6, 1, 1]);
  });

  it('says once which of two rates counts', async () => {
    const warnings: (Error & { code?: string })[] = [];
    const listen = (warning: Error): void => void warnings.push(warning);
    process.on('warning', listen);
    try {
      const poly = new PolyScheduler({ maxUpdate: 10, baseLr: 0.3125 });
      const factor = new FactorScheduler({ step: 10, baseLr: 0.3125 });
      for (const lrScheduler of [poly, poly, factor]) {
        createOptimizer('adam', { lrScheduler });
        createOptimizer('sgd', { lrScheduler });
      }
      await new Promise(setImmediate);
    } finally {
      process.off('warning', listen);
    }
    const own = warnings.filter(({ message }) => message.includes('0.3125'));
    expect(own.map(({ code }) => code)).toEqual(own.map(() => 'GRADLINK_LEARNING_RATE'));
    expect(own.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^adam .* 0\.001.*PolyScheduler.* 0\.3125: /),
      expect.stringMatching(/^adam .*FactorScheduler.*: 0\.001 /),
    ]);
  });

  it.each(['sgd', 'nag', 'lars', 'signum'])('%s takes a negative momentum as none', (name) => {
    const steps = [-0.5, 0].map((momentum) => {
      const optimizer = createOptimizer(name, { momentum } as OptimizerOptions);
      return [stepOf(optimizer), stepOf(optimizer)];
    });
    expect(steps[0]).toEqual(steps[1]);
  });

  it('clips nothing where clipGradient is 0', () => {
    expect(stepOf(new SGD({ learningRate: 1, clipGradient: 0.25 }))).toBe(0.25);
    expect(stepOf(new SGD({ learningRate: 1, clipGradient: 0 }))).toBe(1);
  });

  it('counts updates by key', () => {
    const optimizer = new SGD({ beginNumUpdate: 10 });
    const update = (key: number): void =>
      optimizer.update(key, Float32Array.of(1), Float32Array.of(1));
    [0, 0, 1].forEach(update);
    expect(optimizer.numUpdate).toBe(12);
  });
});

it('states of another optimizer or of other options are refused, and change nothing', () => {
  const saved = new SGD({ momentum: 0.9 });
  saved.update(0, Float32Array.of(1), Float32Array.of(1));
  for (const other of [new SGD(), createOptimizer('adam')]) {
    expect(error(() => other.loadStates(saved.saveStates())).code).toBe('ERR_INVALID_ARG_VALUE');
    expect(other.numUpdate).toBe(0);
  }
});

describe('arguments of update', () => {
  const optimizer = new SGD();
  const floats = new Float32Array(4);

  it.each<[string, () => void, RegExp]>([
    ['another length', () => optimizer.update(0, floats, new Float32Array(5)), /4 elements/],
    [
      'an integer array',
      () => optimizer.update(0, new Int32Array(4), new Int32Array(4)),
      /key 0 .*int32/,
    ],
    [
      'mixed types',
      () => optimizer.update(0, floats, new Float64Array(4), { dtype: 'float32' }),
      /'float64'.*grad/,
    ],
    ['mixed types without a dtype', () => optimizer.update(0, floats, new Float64Array(4)), /grad/],
    ['no gradient', () => optimizer.update(0, floats, []), /one gradient/],
    ['one memory', () => optimizer.update(0, floats, floats), /overlaps weight/],
    ['half a key', () => optimizer.update(0.5, floats, new Float32Array(4)), /key.*0\.5/],
  ])('%s is an error', (_, body, message) => {
    expect(error(body).message).toMatch(message);
  });

  it('the same key with another length is an error', () => {
    optimizer.update('k', new Float32Array(4), new Float32Array(4));
    expect(
      error(() => optimizer.update('k', new Float32Array(5), new Float32Array(5))).message,
    ).toMatch(/key k .*4 elements.* 5/);
  });

  it('empty arrays are fine', () => {
    const update = () => optimizer.update('empty', new Float32Array(0), new Float32Array(0));
    expect(update).not.toThrow();
  });
});
