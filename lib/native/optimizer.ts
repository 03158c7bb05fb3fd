// The native surface of optimizers: native/binding/store/optimizer_wrap.cc. The plain objects here are also what a store's
// setOptimizer takes.
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

/** A schedule as numbers; which of them count depends on the kind. */
export interface NativeSchedulerSpec {
  readonly kind: number;
  readonly baseLr: number;
  readonly warmupSteps: number;
  readonly warmupBeginLr: number;
  /** What a linear warm-up rises to. */
  readonly warmupFinalLr: number;
  readonly warmupMode: number;
  readonly steps: readonly number[];
  /** Of a table, one for each of steps. */
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
  /** One step of the array known by `key`; blocks. All arrays have the dtype and the weight's length. */
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
 * What an option's number may be; a flag is 0 or 1, `positiveOrOff` is off by default and at 0, and what is below 0 counts as 0
 * where it is `clampedAtZero`.
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

/** One option of one optimizer. */
export interface NativeOptimizerOption {
  readonly name: string;
  /** The default; null: off. */
  readonly fallback: number | null;
  readonly range: NativeOptionRange;
}

/** An optimizer's options, those of every optimizer among them. */
export interface NativeOptimizerDefinition {
  readonly name: string;
  /** Its rate replaces a schedule's even where the caller gave none; the others take the schedule's. */
  readonly hasOwnRate: boolean;
  readonly options: readonly NativeOptimizerOption[];
}

export interface OptimizerNatives {
  readonly NativeOptimizer: new (spec: NativeOptimizerSpec) => NativeOptimizer;
  /** Every optimizer, sorted by name: the table of native/kvstore/optimizer/optimizer_options.cc. */
  optimizerDefinitions(): readonly NativeOptimizerDefinition[];
  /**
   * The rate of a schedule at an update. The warm-up is not checked against the base rate, as it is for an optimizer.
   *
   * @throws TypeError for a schedule that no optimizer would take for another reason.
   */
  rateAt(schedule: NativeSchedulerSpec, numUpdate: number): number;
}
