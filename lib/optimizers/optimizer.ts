// What all optimizers share: options, rate, updates without a store, states. The options' names, defaults and ranges are
// the addon's, where the steps are computed.
import { argumentError, ruleError } from '../errors.js';
import type {
  NativeOptimizer,
  NativeOptimizerDefinition,
  NativeOptimizerOption,
  NativeOptimizerSpec,
} from '../native/optimizer.js';
import { native } from '../native/load.js';
import { dtypeNumber, storageOf } from '../tensor/dtype.js';
import type { NumericArray } from '../tensor/dtype.js';
import { assertUsable } from '../tensor/leases.js';
import { assertFixedLength, overlap, overlapError } from '../tensor/memory.js';
import { rowLengthOf } from '../tensor/shape.js';
import { aBoolean, assertWellFormed, optionNames, optionsObject } from '../checks.js';
import {
  assertConcrete,
  checkedNumber,
  checkedObject,
  refuseUnknown,
} from './optimizer-options.js';
import { LRScheduler } from './schedulers.js';

/** A key: what a store calls an array, or the index a caller gives it. */
export type OptimizerKey = number | string;

/** Options that every optimizer has. Defaults are MXNet 1.9.1's. */
export interface OptimizerOptions {
  /**
   * The rate where no schedule decides it, else what a factor schedule starts from; the other schedules start from their own
   * `baseLr`, as in MXNet. Default: said at each optimizer.
   */
  readonly learningRate?: number;
  /** Decides the rate from the number of updates. */
  readonly lrScheduler?: LRScheduler | null;
  /** Weight decay. Default 0. */
  readonly wd?: number;
  /** What gradients are multiplied by first, often 1 / batch size. Default 1. */
  readonly rescaleGrad?: number;
  /** Bound of the absolute value of a gradient's elements; null and 0 do not bound them. Default null. */
  readonly clipGradient?: number | null;
  /** Updates counted as done before the first one. Default 0. */
  readonly beginNumUpdate?: number;
  /** Keeps a float32 copy of float16 and bfloat16 weights and steps on that. Default false. */
  readonly multiPrecision?: boolean;
  /** Multipliers of the rate, by key or by parameter name. */
  readonly lrMult?: Readonly<Record<string, number>>;
  /** Multipliers of the weight decay, by key or by parameter name. */
  readonly wdMult?: Readonly<Record<string, number>>;
  /**
   * Names of the parameters, by key (an array: by index). As in MXNet, a named parameter whose name ends in neither
   * `_weight` nor `_gamma` has no weight decay unless wdMult gives it one.
   */
  readonly paramNames?: Readonly<Record<string, string>> | readonly string[];
}

/** Options of {@link Optimizer.update}. */
export interface UpdateOptions {
  /** The type of the elements where the array does not say it: `'float16'` or `'bfloat16'`. */
  readonly dtype?: 'float16' | 'bfloat16' | 'float32' | 'float64';
  /**
   * The shape of the weight, for optimizers that step row by row ({@link GroupAdaGrad}): a row has the product of all but
   * the first number. Each element is a row of its own when absent.
   */
  readonly shape?: readonly number[] | undefined;
}

const updateNames = optionNames<UpdateOptions>({ dtype: true, shape: true });

/** Options that are no numbers, which the addon's table has. */
const otherOptions = ['lrScheduler', 'lrMult', 'wdMult', 'paramNames'];

let definitions: ReadonlyMap<string, NativeOptimizerDefinition> | undefined;

/** What the addon says of an optimizer's options; it knows every name that a class here has. */
function definitionOf(name: string): NativeOptimizerDefinition {
  definitions ??= new Map(
    native()
      .optimizerDefinitions()
      .map((one) => [one.name, one]),
  );
  const definition = definitions.get(name);
  if (definition === undefined)
    throw argumentError('ERR_INVALID_ARG_VALUE', 'name', 'an optimizer of the addon', name);
  return definition;
}

/**
 * Turns gradients into steps of weights. The same object serves a store (`kv.setOptimizer(optimizer)`, which takes it
 * as it is at that moment and keeps states of its own) and a program without one ({@link update}). Creating one loads the
 * addon, which has the table of options: a GradlinkError ERR_BACKEND_UNAVAILABLE where it cannot be loaded.
 */
export abstract class Optimizer {
  /** The name that {@link createOptimizer} knows it by. */
  readonly name: string;
  /** The schedule that decides the rate, if one does. */
  readonly lrScheduler: LRScheduler | null;
  readonly #options: NativeOptimizerSpec;
  #learningRate: number;
  #rescaleGrad: number;
  #native: NativeOptimizer | undefined;

  /** @internal */
  protected constructor(name: string, options: OptimizerOptions) {
    assertConcrete(new.target, Optimizer, 'new SGD(…), or createOptimizer(name, …)');
    const given = checkedObject(options, 'options');
    const { options: known, hasOwnRate } = definitionOf(name);
    refuseUnknown(given, [...known.map((option) => option.name), ...otherOptions], name);
    const numbers: Record<string, number> = {};
    for (const option of known) {
      const value = given[option.name];
      if (value === undefined || (value === null && option.range === 'positiveOrOff')) continue;
      numbers[option.name] = numberOf(value, option);
    }
    const scheduler = options.lrScheduler ?? null;
    if (scheduler !== null && !(scheduler instanceof LRScheduler)) {
      throw argumentError(
        'ERR_INVALID_ARG_TYPE',
        'lrScheduler',
        'a schedule (new CosineScheduler({…}) for example) or null',
        scheduler,
      );
    }
    this.name = name;
    this.lrScheduler = scheduler;
    const ownRate = fallbackOf(known, 'learningRate');
    this.#learningRate =
      numbers['learningRate'] ?? (scheduler === null || hasOwnRate ? ownRate : scheduler.baseLr);
    if (scheduler !== null) warnOfTwoRates(name, this.#learningRate, scheduler);
    this.#rescaleGrad = numbers['rescaleGrad'] ?? fallbackOf(known, 'rescaleGrad');
    this.#options = {
      name,
      numbers,
      lrMult: multipliers(options.lrMult, 'lrMult'),
      wdMult: multipliers(options.wdMult, 'wdMult'),
      paramNames: namesOf(options.paramNames),
      ...(scheduler === null ? {} : { scheduler: scheduler.spec(this.#learningRate) }),
    };
  }

  /**
   * The optimizer as plain data, as it is now: what a store takes.
   *
   * @internal
   */
  get spec(): NativeOptimizerSpec {
    const now = { learningRate: this.#learningRate, rescaleGrad: this.#rescaleGrad };
    return { ...this.#options, numbers: { ...this.#options.numbers, ...now } };
  }

  /**
   * The rate of the next update, before multipliers. Where there is a schedule it decides, and setting the rate is a
   * TypeError. A store that was given the optimizer is told of a new rate by its own `setLearningRate`.
   */
  get learningRate(): number {
    return this.lrScheduler?.at(this.numUpdate, this.#learningRate) ?? this.#learningRate;
  }

  /** From the next update on. */
  set learningRate(value: number) {
    if (this.lrScheduler !== null) {
      const rule = 'learningRate cannot be set while lrScheduler decides the rate';
      throw ruleError('ERR_INVALID_ARG_VALUE', rule);
    }
    this.#learningRate = checkedNumber(value, 'learningRate', 'finite');
    this.#native?.setLearningRate(value);
  }

  /** What gradients are multiplied by first. */
  get rescaleGrad(): number {
    return this.#rescaleGrad;
  }

  /** From the next update on. */
  set rescaleGrad(value: number) {
    this.#rescaleGrad = checkedNumber(value, 'rescaleGrad', 'finite');
    this.#native?.setRescaleGrad(value);
  }

  /** The largest number of updates that {@link update} has made of any key. */
  get numUpdate(): number {
    return this.#native?.numUpdate() ?? this.#options.numbers['beginNumUpdate'] ?? 0;
  }

  /**
   * One step of one array, in place; returns when it is done. States are made at a key's first update.
   *
   * @param key - tells the array from others: states and counts are kept by it. `3` and `'3'` are the same key.
   * @param weight - Float32Array, Float64Array, or float16 and bfloat16 as in the collectives.
   * @param grad - one gradient of the weight's type and length, or several, which are summed in the same pass.
   * @throws TypeError for arrays of other types or lengths, and for a key whose array had another length before.
   */
  update(
    key: OptimizerKey,
    weight: NumericArray,
    grad: NumericArray | readonly NumericArray[],
    options?: UpdateOptions,
  ): void {
    const { dtype, shape } = optionsObject(options, updateNames, 'update');
    const grads = Array.isArray(grad) ? (grad as readonly NumericArray[]) : [grad as NumericArray];
    const number = dtypeNumber(weight, dtype, 'weight');
    assertFixedLength(weight, 'weight');
    for (const one of grads) {
      dtypeNumber(one, dtype, 'grad');
      assertFixedLength(one, 'grad');
      if (overlap(weight, one)) throw overlapError('grad', 'weight');
      if (one.length !== weight.length) {
        throw argumentError('ERR_OUT_OF_RANGE', 'grad', `${weight.length} elements`, {
          text: `${one.length}`,
        });
      }
    }
    assertUsable('update', grads, weight);
    const rowLength = rowLengthOf(shape, weight.length);
    this.#ready().update(keyText(key), number, storageOf(weight), grads.map(storageOf), rowLength);
  }

  /** All states of {@link update}, bit for bit, with the counts; not the options. */
  saveStates(): Uint8Array {
    return this.#ready().saveStates();
  }

  /**
   * Goes on from what {@link saveStates} gave or a store's saveOptimizerStates wrote.
   *
   * @throws TypeError for states of another optimizer, of other options, or damaged ones; nothing has changed then.
   */
  loadStates(states: Uint8Array): void {
    this.#ready().loadStates(states);
  }

  #ready(): NativeOptimizer {
    return (this.#native ??= new (native().NativeOptimizer)(this.spec));
  }
}

const warned = new Set<string>();

/** Which of two rates counts is no guess for whoever reads the program: said once, as MXNet does. */
function warnOfTwoRates(name: string, learningRate: number, scheduler: LRScheduler): void {
  const { baseLr, followsOptimizer, hasBaseRate } = scheduler;
  if (learningRate === baseLr || !hasBaseRate) return;
  const counts = followsOptimizer
    ? `${learningRate} is what the schedule starts from, and its own rate what a warm-up rises to`
    : `the schedule's own rate counts`;
  const text = `${name} has the learning rate ${learningRate}, its ${scheduler.constructor.name} the base rate ${baseLr}: ${counts}. Give both the same to be clear.`;
  if (warned.has(text)) return;
  warned.add(text);
  process.emitWarning(text, { code: 'GRADLINK_LEARNING_RATE' });
}

/** The default of an option that every optimizer has. */
function fallbackOf(options: readonly NativeOptimizerOption[], name: string): number {
  return options.find((option) => option.name === name)?.fallback ?? Number.NaN;
}

function numberOf(value: unknown, { name, range }: NativeOptimizerOption): number {
  if (range === 'flag') return aBoolean(value, name) === true ? 1 : 0;
  if (range === 'positiveOrOff') return checkedNumber(value, name, 'notNegative');
  return checkedNumber(value, name, range === 'clampedAtZero' ? 'finite' : range);
}

function keyText(key: OptimizerKey): string {
  if (typeof key === 'string') {
    assertWellFormed(key, 'key');
    return key;
  }
  if (Number.isSafeInteger(key)) return String(key);
  throw argumentError('ERR_INVALID_ARG_TYPE', 'key', 'a string or an integer', key);
}

function multipliers(value: unknown, name: string): Readonly<Record<string, number>> {
  if (value === undefined) return {};
  const entries = Object.entries(checkedObject(value, name));
  for (const [key] of entries) assertWellFormed(key, `a key of ${name}`);
  return Object.fromEntries(
    entries.map(([key, number]) => [key, checkedNumber(number, `${name}['${key}']`, 'finite')]),
  );
}

function namesOf(value: OptimizerOptions['paramNames']): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  const names = Object.entries(
    Array.isArray(value) ? Object.fromEntries(value.entries()) : checkedObject(value, 'paramNames'),
  );
  for (const [key, name] of names) {
    if (typeof name !== 'string') {
      throw argumentError('ERR_INVALID_ARG_TYPE', `paramNames['${key}']`, 'a string', name);
    }
    assertWellFormed(key, 'a key of paramNames');
    assertWellFormed(name, `paramNames['${key}']`);
  }
  return Object.fromEntries(names);
}
