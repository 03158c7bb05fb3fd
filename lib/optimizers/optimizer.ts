// The common part of all optimizers: options, rate, updates without a store, states. Option names, defaults and ranges
// come from the addon, which computes the steps.
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

/** A key: a store's name of an array, or an index of the caller's. */
export type OptimizerKey = number | string;

/** Common options. Defaults are MXNet 1.9.1's. */
export interface OptimizerOptions {
  /**
   * The rate without a schedule, or the initial rate of a factor schedule; other schedules start from their own
   * `baseLr`, as in MXNet. Each optimizer has its own default.
   */
  readonly learningRate?: number;
  /** Sets the rate by the number of updates. */
  readonly lrScheduler?: LRScheduler | null;
  /** Weight decay. Default 0. */
  readonly wd?: number;
  /** Factor of gradients, often 1 / batch size. Default 1. */
  readonly rescaleGrad?: number;
  /** Bound of the gradients' absolute values; null and 0 for none. Default null. */
  readonly clipGradient?: number | null;
  /** Number of earlier updates. Default 0. */
  readonly beginNumUpdate?: number;
  /** Keeps a float32 copy of float16 and bfloat16 weights for the steps. Default false. */
  readonly multiPrecision?: boolean;
  /** Multipliers of the rate, by key or by parameter name. */
  readonly lrMult?: Readonly<Record<string, number>>;
  /** Multipliers of the weight decay, by key or by parameter name. */
  readonly wdMult?: Readonly<Record<string, number>>;
  /**
   * Parameter names by key (an array: by index). As in MXNet, a named parameter without the suffix `_weight` or
   * `_gamma` has no weight decay unless wdMult sets it.
   */
  readonly paramNames?: Readonly<Record<string, string>> | readonly string[];
}

/** Options of {@link Optimizer.update}. */
export interface UpdateOptions {
  /** The element type, for arrays that do not tell: `'float16'` or `'bfloat16'`. */
  readonly dtype?: 'float16' | 'bfloat16' | 'float32' | 'float64';
  /**
   * The shape of the weight, for optimizers that step by row ({@link GroupAdaGrad}): a row's length is the product of
   * all but the first number. When absent each element is a row.
   */
  readonly shape?: readonly number[] | undefined;
}

const updateNames = optionNames<UpdateOptions>({ dtype: true, shape: true });

/** Options that are not numbers, which the addon's table lacks. */
const otherOptions = ['lrScheduler', 'lrMult', 'wdMult', 'paramNames'];

let definitions: ReadonlyMap<string, NativeOptimizerDefinition> | undefined;

/** The addon's option table of an optimizer; it knows every name used here. */
export function definitionOf(name: string): NativeOptimizerDefinition {
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
 * Turns gradients into steps of weights. The same object works with a store (`kv.setOptimizer(optimizer)` copies it,
 * and keeps its own states) and without one ({@link update}). The constructor loads the addon, which has the option
 * table, and throws GradlinkError ERR_BACKEND_UNAVAILABLE if that fails.
 */
export abstract class Optimizer {
  /** Its name for {@link createOptimizer}. */
  readonly name: string;
  /** The schedule of the rate, if any. */
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
   * The current settings as plain data, for a store.
   *
   * @internal
   */
  get spec(): NativeOptimizerSpec {
    const now = { learningRate: this.#learningRate, rescaleGrad: this.#rescaleGrad };
    return { ...this.#options, numbers: { ...this.#options.numbers, ...now } };
  }

  /**
   * The rate of the next update, before multipliers. With a schedule, setting it is a TypeError. For a store's copy use
   * its `setLearningRate`.
   */
  get learningRate(): number {
    return this.lrScheduler?.at(this.numUpdate, this.#learningRate) ?? this.#learningRate;
  }

  /** Applies from the next update on. */
  set learningRate(value: number) {
    if (this.lrScheduler !== null) {
      const rule = 'learningRate cannot be set while lrScheduler decides the rate';
      throw ruleError('ERR_INVALID_ARG_VALUE', rule);
    }
    this.#learningRate = checkedNumber(value, 'learningRate', 'finite');
    this.#native?.setLearningRate(value);
  }

  /** Factor of gradients. */
  get rescaleGrad(): number {
    return this.#rescaleGrad;
  }

  /** Applies from the next update on. */
  set rescaleGrad(value: number) {
    this.#rescaleGrad = checkedNumber(value, 'rescaleGrad', 'finite');
    this.#native?.setRescaleGrad(value);
  }

  /** The largest number of updates of any key by {@link update}. */
  get numUpdate(): number {
    return this.#native?.numUpdate() ?? this.#options.numbers['beginNumUpdate'] ?? 0;
  }

  /**
   * One blocking step of one array, in place. A key's first update creates its state.
   *
   * @param key - identifies the array's state and count. `3` and `'3'` are the same key.
   * @param weight - Float32Array, Float64Array, or float16 and bfloat16 as in the collectives.
   * @param grad - one gradient of the weight's type and length, or several, which are summed in the same pass.
   * @throws TypeError for arrays of other types or lengths, and if the key's array had another length before.
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

  /** All states of {@link update} with the counts, bit for bit; without options. */
  saveStates(): Uint8Array {
    return this.#ready().saveStates();
  }

  /**
   * Restores states from {@link saveStates} or a file of a store's saveOptimizerStates.
   *
   * @throws TypeError for states of another optimizer or other options, or damaged ones, before any change.
   */
  loadStates(states: Uint8Array): void {
    this.#ready().loadStates(states);
  }

  #ready(): NativeOptimizer {
    return (this.#native ??= new (native().NativeOptimizer)(this.spec));
  }
}

const warned = new Set<string>();

/** Warns once about two conflicting rates, as MXNet does. */
function warnOfTwoRates(name: string, learningRate: number, scheduler: LRScheduler): void {
  const { baseLr, followsOptimizer, hasBaseRate } = scheduler;
  if (learningRate === baseLr || !hasBaseRate) return;
  const counts = followsOptimizer
    ? `${learningRate} is the rate that the schedule starts from, and a warm-up rises to the schedule's own`
    : `the schedule's own rate counts`;
  const text = `${name} has the learning rate ${learningRate}, its ${scheduler.constructor.name} the base rate ${baseLr}: ${counts}. Give both the same to be clear.`;
  if (warned.has(text)) return;
  warned.add(text);
  process.emitWarning(text, { code: 'GRADLINK_LEARNING_RATE' });
}

/** The default of a common option. */
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
