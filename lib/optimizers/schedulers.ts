// Learning-rate schedules with the formulas and defaults of MXNet 1.9.1's lr_scheduler, as pure functions of the number
// of updates. The addon computes them, as servers do.
import { aFunction, integer, oneOf } from '../checks.js';
import { argumentError } from '../errors.js';
import { native } from '../native/load.js';
import { nativeSchedulerKinds, nativeWarmupModes } from '../native/optimizer.js';
import type { NativeSchedulerSpec } from '../native/optimizer.js';
import {
  assertConcrete,
  checkedNumber,
  checkedObject,
  refuseUnknown,
} from './optimizer-options.js';

/** How the rate behaves during warm-up. */
export type WarmupMode = 'linear' | 'constant';

/** Common options. */
export interface SchedulerOptions {
  /**
   * The rate after warm-up, which a linear warm-up rises to. An optimizer's `learningRate` only replaces the start of
   * {@link FactorScheduler} and {@link MultiFactorScheduler}. Default 0.01.
   */
  readonly baseLr?: number;
  /** Updates of warm-up, before any decay. Default 0. */
  readonly warmupSteps?: number;
  /** The rate at update 0 of the warm-up; at most baseLr. Default 0. */
  readonly warmupBeginLr?: number;
  /** `'linear'` rises evenly to baseLr, `'constant'` stays at warmupBeginLr. Default `'linear'`. */
  readonly warmupMode?: WarmupMode;
}

/** Options of {@link FactorScheduler}. */
export interface FactorSchedulerOptions extends SchedulerOptions {
  /** Updates between two reductions. */
  readonly step: number;
  /** Factor of each reduction; above 0, at most 1. Default 1. */
  readonly factor?: number;
  /** The rate never falls below this. Default 1e-8. */
  readonly stopFactorLr?: number;
}

/** Options of {@link MultiFactorScheduler}. */
export interface MultiFactorSchedulerOptions extends SchedulerOptions {
  /** Updates after which the rate is reduced, ascending. */
  readonly steps: readonly number[];
  /** Factor of each reduction; above 0, at most 1. Default 1. */
  readonly factor?: number;
}

/** Options of {@link CosineScheduler}. */
export interface CosineSchedulerOptions extends SchedulerOptions {
  /** The update that reaches finalLr; greater than warmupSteps. */
  readonly maxUpdate: number;
  /** Default 0. */
  readonly finalLr?: number;
}

/** Options of {@link PolyScheduler}. */
export interface PolySchedulerOptions extends CosineSchedulerOptions {
  /** The exponent (MXNet's `pwr`), above 0. Default 2. */
  readonly power?: number;
}

const commonOptions = ['baseLr', 'warmupSteps', 'warmupBeginLr', 'warmupMode'];
const defaultBaseLr = 0.01;

type Shape = Pick<
  NativeSchedulerSpec,
  'kind' | 'steps' | 'rates' | 'factor' | 'stopFactorLr' | 'maxUpdate' | 'finalLr' | 'power'
>;

/** Options of {@link FunctionScheduler}. */
export interface FunctionSchedulerOptions {
  /** The rate at an update. Called once for each number from 0 to `updates` by the constructor. */
  readonly rate: (numUpdate: number) => number;
  /** The last update to call it for, whose rate stays; at most 10,000,000. */
  readonly updates: number;
}

/** A rate as a function of the number of updates. Immutable, so optimizers can share it. */
export abstract class LRScheduler {
  /** The rate after warm-up, unless an optimizer replaces it. */
  readonly baseLr: number;
  readonly #warmup: Pick<
    NativeSchedulerSpec,
    'warmupSteps' | 'warmupBeginLr' | 'warmupFinalLr' | 'warmupMode'
  >;
  readonly #shape: Shape;

  /** @internal */
  protected constructor(
    name: string,
    own: readonly string[],
    options: SchedulerOptions,
    shape: Shape,
  ) {
    assertConcrete(new.target, LRScheduler, 'new CosineScheduler(…)');
    refuseUnknown({ ...options }, [...commonOptions, ...own], name);
    const { warmupSteps = 0, warmupBeginLr = 0, warmupMode = 'linear' } = options;
    this.baseLr = checkedNumber(options.baseLr ?? defaultBaseLr, 'baseLr', 'finite');
    oneOf(warmupMode, 'warmupMode', Object.keys(nativeWarmupModes));
    this.#shape = shape;
    this.#warmup = {
      warmupSteps: checkedNumber(warmupSteps, 'warmupSteps', 'count'),
      warmupBeginLr: checkedNumber(warmupBeginLr, 'warmupBeginLr', 'finite'),
      warmupFinalLr: this.baseLr,
      warmupMode: nativeWarmupModes[warmupMode],
    };
    if (warmupSteps > 0 && warmupBeginLr > this.baseLr) {
      throw argumentError(
        'ERR_OUT_OF_RANGE',
        'warmupBeginLr',
        `at most the base rate, ${this.baseLr}`,
        warmupBeginLr,
      );
    }
  }

  /**
   * The rate at an update.
   *
   * @param numUpdate - the largest number of updates of any key, including this one: 1 for the first update.
   * @param learningRate - the optimizer's, if any.
   * @throws RangeError for an invalid number of updates; GradlinkError ERR_BACKEND_UNAVAILABLE if the addon, which
   *   computes the rate, cannot be loaded.
   */
  at(numUpdate: number, learningRate?: number): number {
    checkedNumber(numUpdate, 'numUpdate', 'count');
    return native().rateAt(this.spec(learningRate), numUpdate);
  }

  /**
   * Whether the decay starts from the optimizer's rate. MXNet then sets the schedule's base rate, which schedules that
   * compute from the first rate no longer read.
   *
   * @internal
   */
  get followsOptimizer(): boolean {
    const { kind } = this.#shape;
    return kind === nativeSchedulerKinds.factor || kind === nativeSchedulerKinds.multiFactor;
  }

  /**
   * Whether it has a base rate, which an optimizer's may contradict.
   *
   * @internal
   */
  get hasBaseRate(): boolean {
    return this.#shape.kind !== nativeSchedulerKinds.table;
  }

  /**
   * The schedule as plain data, for native code and for files.
   *
   * @internal
   */
  spec(learningRate = this.baseLr): NativeSchedulerSpec {
    const baseLr = this.followsOptimizer
      ? checkedNumber(learningRate, 'learningRate', 'finite')
      : this.baseLr;
    return { baseLr, ...this.#warmup, ...this.#shape };
  }
}

/** The unused parts of a schedule. */
const unused: Omit<Shape, 'kind'> = {
  steps: [],
  rates: [],
  factor: 1,
  stopFactorLr: 1e-8,
  maxUpdate: 1,
  finalLr: 0,
  power: 2,
};

function factorOf(value: number): number {
  checkedNumber(value, 'factor', 'positive');
  if (value > 1) throw argumentError('ERR_OUT_OF_RANGE', 'factor', 'at most 1', value);
  return value;
}

/** Multiplies the rate by `factor` after every `step` updates. */
export class FactorScheduler extends LRScheduler {
  constructor(options: FactorSchedulerOptions) {
    checkedObject(options, 'options');
    const { factor = 1, stopFactorLr = 1e-8 } = options;
    const step = checkedNumber(options.step, 'step', 'updates');
    super('FactorScheduler', ['step', 'factor', 'stopFactorLr'], options, {
      ...unused,
      kind: nativeSchedulerKinds.factor,
      steps: [step],
      factor: factorOf(factor),
      stopFactorLr: checkedNumber(stopFactorLr, 'stopFactorLr', 'finite'),
    });
  }
}

/** Multiplies the rate by `factor` after each of the listed updates. */
export class MultiFactorScheduler extends LRScheduler {
  constructor(options: MultiFactorSchedulerOptions) {
    checkedObject(options, 'options');
    const { factor = 1 } = options;
    super('MultiFactorScheduler', ['steps', 'factor'], options, {
      ...unused,
      kind: nativeSchedulerKinds.multiFactor,
      steps: ascending(options.steps),
      factor: factorOf(factor),
    });
  }
}

function ascending(steps: unknown): readonly number[] {
  const expected = 'an array of ascending integers of at least 1';
  if (!Array.isArray(steps) || steps.length === 0) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'steps', expected, steps);
  }
  let before = 0;
  return Array.from(steps, (step: unknown, i) => {
    if (typeof step !== 'number' || !Number.isSafeInteger(step) || step <= before) {
      throw argumentError('ERR_OUT_OF_RANGE', `steps[${i}]`, `an integer above ${before}`, step);
    }
    before = step;
    return step;
  });
}

/** The schedules from the base rate to finalLr over the updates up to maxUpdate. */
abstract class SpanScheduler extends LRScheduler {
  protected constructor(
    name: string,
    own: readonly string[],
    options: CosineSchedulerOptions,
    shape: Pick<Shape, 'kind' | 'power'>,
  ) {
    const { maxUpdate, finalLr = 0, warmupSteps = 0 } = options;
    checkedNumber(maxUpdate, 'maxUpdate', 'updates');
    checkedNumber(finalLr, 'finalLr', 'finite');
    super(name, ['maxUpdate', 'finalLr', ...own], options, {
      ...unused,
      ...shape,
      maxUpdate,
      finalLr,
    });
    if (maxUpdate <= warmupSteps) {
      throw argumentError(
        'ERR_OUT_OF_RANGE',
        'maxUpdate',
        `an integer above warmupSteps, ${warmupSteps}`,
        maxUpdate,
      );
    }
  }
}

/** finalLr + (baseLr - finalLr) * (1 - n / N)^power, with n and N counted from the end of the warm-up. */
export class PolyScheduler extends SpanScheduler {
  constructor(options: PolySchedulerOptions) {
    checkedObject(options, 'options');
    super('PolyScheduler', ['power'], options, {
      kind: nativeSchedulerKinds.poly,
      power: checkedNumber(options.power ?? 2, 'power', 'positive'),
    });
  }
}

/** finalLr + (baseLr - finalLr) * (1 + cos(pi n / N)) / 2, with n and N counted from the end of the warm-up. */
export class CosineScheduler extends SpanScheduler {
  constructor(options: CosineSchedulerOptions) {
    checkedObject(options, 'options');
    super('CosineScheduler', [], options, { kind: nativeSchedulerKinds.cosine, power: 2 });
  }
}

/** Entries of a table: 16 MiB, sent to each server. */
const mostChanges = 2 ** 20;
const mostUpdates = 10_000_000;

/**
 * A custom schedule. Servers and GPUs run no JavaScript, so the constructor turns the function into a table: it may
 * change its rate 1,048,576 times.
 *
 * @example
 * ```ts
 * const cyclic = new FunctionScheduler({ rate: (n) => 0.1 + 0.05 * Math.sin(n / 100), updates: 50_000 });
 * await kv.setOptimizer(new SGD({ lrScheduler: cyclic }));
 * ```
 */
export class FunctionScheduler extends LRScheduler {
  readonly #steps: readonly number[];
  readonly #rates: readonly number[];

  constructor(options: FunctionSchedulerOptions) {
    checkedObject(options, 'options');
    refuseUnknown({ ...options }, ['rate', 'updates'], 'FunctionScheduler');
    const { first, steps, rates } = tableOf(options);
    const shape = { ...unused, kind: nativeSchedulerKinds.table, steps, rates };
    super('FunctionScheduler', [], { baseLr: first }, shape);
    this.#steps = steps;
    this.#rates = rates;
  }

  /** Reads the table here: the addon would need all of it at each call. */
  override at(numUpdate: number): number {
    checkedNumber(numUpdate, 'numUpdate', 'count');
    let [from, to] = [0, this.#steps.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#steps[middle]! <= numUpdate) from = middle + 1;
      else to = middle;
    }
    return from === 0 ? this.baseLr : this.#rates[from - 1]!;
  }
}

/** The rate at 0, and each update with a new rate. */
function tableOf({ rate, updates }: FunctionSchedulerOptions): {
  first: number;
  steps: number[];
  rates: number[];
} {
  aFunction(rate, 'rate');
  integer(updates, 'updates', 1, mostUpdates);
  const rateAt = (n: number) => checkedNumber(rate(n), `rate(${n})`, 'finite');
  const first = rateAt(0);
  const [steps, rates]: [number[], number[]] = [[], []];
  let last = first;
  for (let n = 1; n <= updates; ++n) {
    const next = rateAt(n);
    if (next === last) continue;
    if (steps.length === mostChanges) {
      const expected = `a rate that changes at most ${mostChanges} times (hold it for some updates)`;
      throw argumentError('ERR_OUT_OF_RANGE', 'rate', expected, mostChanges + 1);
    }
    steps.push(n);
    rates.push(next);
    last = next;
  }
  return { first, steps, rates };
}
