// The native interface of optimizers: native/binding/store/optimizer_wrap.cc. A store's setOptimizer takes the same
// plain objects.
import type { StorageArray } from './arrays.js';

/** Numbers of the schedules, as in native/kvstore/optimizer/lr_scheduler.h. */
export const nativeSchedulerKinds = {
  factor: 0,
  multiFactor: 1,
  poly: 2,
  cosine: 3,
  table: 4,
} as const;
export const nativeWarmupModes = { linear: 0, constant: 1 } as const;

/** A schedule as numbers; the kind tells which are used. */
export interface NativeSchedulerSpec {
  readonly kind: number;
  readonly baseLr: number;
  readonly warmupSteps: number;
  readonly warmupBeginLr: number;
  /** The final rate of a linear warm-up. */
  readonly warmupFinalLr: number;
  readonly warmupMode: number;
  readonly steps: readonly number[];
  /** Of a table, one per step. */
  readonly rates: readonly number[];
  readonly factor: number;
  readonly stopFactorLr: number;
  readonly maxUpdate: number;
  readonly finalLr: number;
  readonly power: number;
}

/** An optimizer as plain data. */
export interface NativeOptimizerSpec {
  readonly name: string;
  /** Options by name, flags as 0 or 1; absent ones have the optimizer's defaults. */
  readonly numbers: Readonly<Record<string, number>>;
  readonly scheduler?: NativeSchedulerSpec;
  readonly lrMult?: Readonly<Record<string, number>>;
  readonly wdMult?: Readonly<Record<string, number>>;
  readonly paramNames?: Readonly<Record<string, string>>;
}

export interface NativeOptimizer {
  /** One blocking step of the array with this key. All arrays have the dtype and the weight's length. */
  update(
    key: string,
    dtype: number,
    weight: StorageArray,
    grads: readonly StorageArray[],
    rowLength: number,
  ): void;
  learningRate(): number;
  setLearningRate(value: number): void;
  setRescaleGrad(value: number): void;
  numUpdate(): number;
  saveStates(): Uint8Array;
  /** States of another optimizer, or damaged ones, throw and change nothing. */
  loadStates(states: Uint8Array): void;
}

/**
 * The range of an option. A flag is 0 or 1; `positiveOrOff` is off at 0 and by default; with `clampedAtZero` negative
 * values count as 0.
 */
export type NativeOptionRange =
  | 'finite'
  | 'notNegative'
  | 'clampedAtZero'
  | 'positive'
  | 'positiveOrOff'
  | 'unit'
  | 'flag'
  | 'count';

export interface NativeOptimizerOption {
  readonly name: string;
  /** The default; null: off. */
  readonly fallback: number | null;
  readonly range: NativeOptionRange;
}

/** The options of an optimizer, including those common to all. */
export interface NativeOptimizerDefinition {
  readonly name: string;
  /** Whether its own default rate overrides a schedule's; the others take the schedule's. */
  readonly hasOwnRate: boolean;
  /** Whether GPUs have a kernel for its step. */
  readonly onGpus: boolean;
  readonly options: readonly NativeOptimizerOption[];
}

export interface OptimizerNatives {
  readonly NativeOptimizer: new (spec: NativeOptimizerSpec) => NativeOptimizer;
  /** Every optimizer, sorted by name: the table of native/kvstore/optimizer/optimizer_options.cc. */
  optimizerDefinitions(): readonly NativeOptimizerDefinition[];
  /**
   * The rate of a schedule at an update. Unlike for an optimizer, the warm-up is not checked against the base rate.
   *
   * @throws TypeError for a schedule that is invalid for other reasons.
   */
  rateAt(schedule: NativeSchedulerSpec, numUpdate: number): number;
}
