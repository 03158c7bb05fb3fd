// What a store's pulls must give, computed without the store: sums in float64, the optimizer's own copy in float64,
// the compression by its definition. Outside every timed region.
import { native } from '../../native/load.js';
import type { NativeChecked, NativePushed, NativePushRule } from '../../native/measure.js';
import type { Optimizer } from '../../optimizers/index.js';
import { parseDType } from '../../tensor/dtype.js';
import type { GradientArray, GradientType } from './gradients.js';

/** How a store compresses gradients: see `KVStore.setGradientCompression`. */
export interface Compression {
  /** As `setGradientCompression` takes it. */
  readonly type: '2bit' | '1bit';
  /** What a compressed element stands for, with its sign. */
  readonly threshold: number;
}

/** What came out against what had to. */
export interface Comparison {
  /**
   * MXNet's: the sum over arrays, devices and elements of |out - expected|, by the sum over arrays and elements of
   * |expected|. A relative error e of every element therefore shows as devices * e. 0 where both sums are 0, Infinity
   * where only the expected one is.
   */
  readonly error: number;
  /** Elements further off than rounding can explain. */
  readonly wrong: number;
}

export interface ReferenceOptions {
  readonly dtype: GradientType;
  /** gradients[array][device]. */
  readonly gradients: readonly (readonly GradientArray[])[];
  /** Workers that push the same gradients. */
  readonly workers: number;
  /** An instance of its own, with the store's settings. */
  readonly optimizer?: Optimizer | undefined;
  readonly compression?: Compression | undefined;
  /** Whether a worker's devices are summed, in float32, before anything is compressed: stores with servers. */
  readonly compressesSums?: boolean;
}

/** Largest relative error of rounding a number to the type. */
const roundoff: Readonly<Record<GradientType, number>> = {
  float64: 2 ** -53,
  float32: 2 ** -24,
  float16: 2 ** -11,
  bfloat16: 2 ** -8,
};

/**
 * Bound of {@link Comparison.error} for right results. A sum of n numbers below 1 is off by at most n roundings of
 * partial sums below n, that is n u of what it may reach, on each of n devices: n n u, taken four times since random
 * sums come out smaller than they might. Half types are summed in float32 and rounded once: n u. An optimizer adds
 * about sixteen roundings an update to each of n weights, for half types those of their float32 copy.
 */
export function errorTolerance(dtype: GradientType, devices: number, updates: number): number {
  const half = dtype === 'float16' || dtype === 'bfloat16';
  const summing = 4 * devices * (half ? 1 : devices) * roundoff[dtype];
  return summing + 16 * devices * updates * roundoff[half ? 'float32' : dtype];
}

// Numbers of CheckedCompression in native/measure/store_check.h.
const compressions = { none: 0, '2bit': 1, '1bit': 2 } as const;

function ruleOf({ dtype, workers, compression, compressesSums }: ReferenceOptions): NativePushRule {
  return {
    dtype: parseDType(dtype),
    workers,
    compression: compressions[compression?.type ?? 'none'],
    threshold: compression?.threshold ?? 0,
    compressesSums: compressesSums === true,
  };
}

/** What goes into one array's sum, with what its compression keeps. */
function pushedOf(
  gradients: readonly GradientArray[],
  { compression, compressesSums }: ReferenceOptions,
): NativePushed {
  const count = gradients[0]?.length ?? 0;
  const kept = compression === undefined ? 0 : compressesSums === true ? 1 : gradients.length;
  const residuals = Array.from({ length: kept }, () => new Float32Array(count));
  return { count, gradients, residuals };
}

/** The expected values of one store; `compare` once a batch, since optimizers and residuals go on from it. */
export class StoreReference {
  private readonly rule: NativePushRule;
  private readonly pushed: readonly NativePushed[];
  private readonly weights: readonly Float64Array[] | undefined;
  private readonly sum: Float64Array;
  private updates = 0;

  constructor(private readonly options: ReferenceOptions) {
    this.rule = ruleOf(options);
    this.pushed = options.gradients.map((devices) => pushedOf(devices, options));
    const stepped = options.optimizer === undefined ? undefined : this.pushed;
    this.weights = stepped?.map(({ count }) => new Float64Array(count));
    this.sum = new Float64Array(Math.max(0, ...(stepped ?? []).map(({ count }) => count)));
  }

  private get devices(): number {
    return this.options.gradients[0]?.length ?? 1;
  }

  /** Bound of the error after the batches so far. */
  get tolerance(): number {
    const updates = this.weights === undefined ? 0 : this.updates;
    return errorTolerance(this.options.dtype, this.devices, updates);
  }

  /**
   * Bound of one element. Sums are held to it. Optimizers are not: where one takes a sign or a quotient, a rounding next to
   * zero may flip an element.
   */
  private get bound(): number {
    const { dtype, compression, workers } = this.options;
    if (this.weights !== undefined) return Infinity;
    const devices = this.devices * workers;
    return devices * devices * Math.max(1, compression?.threshold ?? 0) * roundoff[dtype];
  }

  /**
   * Goes one batch on and compares.
   *
   * @param outs outs[array][device], as pulled; absent: only goes on
   */
  compare(outs?: readonly (readonly GradientArray[])[]): Comparison {
    this.updates += 1;
    this.step();
    const arrays = this.pushed.map((pushed, array): NativeChecked => ({
      ...pushed,
      expected: this.weights?.[array] ?? null,
      outs: outs?.[array] ?? [],
    }));
    const { magnitudes, differences, wrong } = native().checkOuts(arrays, this.rule, this.bound);
    let next = 0;
    let difference = 0;
    let magnitude = 0;
    let wrongs = 0;
    arrays.forEach(({ outs: compared }, array) => {
      const size = magnitudes[array] ?? 0;
      magnitude += size;
      for (let out = 0; out < compared.length; out += 1, next += 1) {
        const off = differences[next] ?? 0;
        difference += off;
        // With an optimizer an array is wrong when it is off on the whole, and so where it holds a NaN.
        const whole = this.weights !== undefined && !(off <= this.tolerance * size) ? 1 : 0;
        wrongs += Math.max(wrong[next] ?? 0, whole);
      }
    });
    const error = magnitude > 0 ? difference / magnitude : difference === 0 ? 0 : Infinity;
    return { error, wrong: wrongs };
  }

  /** The optimizer's step of every array. */
  private step(): void {
    const { optimizer } = this.options;
    this.weights?.forEach((weight, array) => {
      const pushed = this.pushed[array];
      if (pushed === undefined) return;
      const sum = this.sum.subarray(0, pushed.count);
      native().sumPushed(sum, pushed, this.rule);
      optimizer?.update(array, weight, sum);
    });
  }
}
