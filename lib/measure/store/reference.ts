// The expected values of a store's pulls, computed without the store: sums and optimizer in float64, compression by its
// definition. Outside every timed region.
import { native } from '../../native/load.js';
import type { NativeChecked, NativePushed, NativePushRule } from '../../native/measure.js';
import type { Optimizer } from '../../optimizers/index.js';
import { parseDType } from '../../tensor/dtype.js';
import type { GradientArray, GradientType } from './gradients.js';

/** A store's compression: see `KVStore.setGradientCompression`. */
export interface Compression {
  /** As for `setGradientCompression`. */
  readonly type: '2bit' | '1bit';
  /** The magnitude of a compressed element. */
  readonly threshold: number;
}

/** The difference between actual and expected values. */
export interface Comparison {
  /**
   * MXNet's error: the sum over arrays, devices and elements of |out - expected|, divided by the sum over arrays and
   * elements of |expected|. A relative error e of all elements gives devices * e. 0 if both sums are 0, Infinity if
   * only the expected one is.
   */
  readonly error: number;
  /** Elements whose error exceeds rounding. */
  readonly wrong: number;
}

export interface ReferenceOptions {
  readonly dtype: GradientType;
  /** gradients[array][device]. */
  readonly gradients: readonly (readonly GradientArray[])[];
  /** Workers that push the same gradients. */
  readonly workers: number;
  /** A separate instance with the store's settings. */
  readonly optimizer?: Optimizer | undefined;
  readonly compression?: Compression | undefined;
  /** Whether a worker's devices are summed in float32 before compression: stores with servers. */
  readonly compressesSums?: boolean;
}

/** Largest relative rounding error of the type. */
const roundoff: Readonly<Record<GradientType, number>> = {
  float64: 2 ** -53,
  float32: 2 ** -24,
  float16: 2 ** -11,
  bfloat16: 2 ** -8,
};

/**
 * Bound of {@link Comparison.error} for correct results. A sum of n numbers below 1 has at most n roundings of partial
 * sums below n, relative error n u, on each of n devices: n n u, times four because random sums are smaller than
 * possible. Half types are summed in float32 and rounded once: n u. An optimizer adds about sixteen roundings per
 * update to each of n weights; half types use float32 weights.
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

/** The terms of one array's sum, with compression residuals. */
function pushedOf(
  gradients: readonly GradientArray[],
  { compression, compressesSums }: ReferenceOptions,
): NativePushed {
  const count = gradients[0]?.length ?? 0;
  const kept = compression === undefined ? 0 : compressesSums === true ? 1 : gradients.length;
  const residuals = Array.from({ length: kept }, () => new Float32Array(count));
  return { count, gradients, residuals };
}

/** The expected values of one store; call `compare` once per batch, because optimizers and residuals carry over. */
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
   * Bound per element, for sums only. With optimizers that use signs or quotients, a rounding near zero may flip an
   * element.
   */
  private get bound(): number {
    const { dtype, compression, workers } = this.options;
    if (this.weights !== undefined) return Infinity;
    const devices = this.devices * workers;
    return devices * devices * Math.max(1, compression?.threshold ?? 0) * roundoff[dtype];
  }

  /**
   * Advances by one batch and compares.
   *
   * @param outs outs[array][device], as pulled; absent: only advances
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
        // With an optimizer an array is wrong if its total error is too large, or it holds a NaN.
        const whole = this.weights !== undefined && !(off <= this.tolerance * size) ? 1 : 0;
        wrongs += Math.max(wrong[next] ?? 0, whole);
      }
    });
    const error = magnitude > 0 ? difference / magnitude : difference === 0 ? 0 : Infinity;
    return { error, wrong: wrongs };
  }

  /** The optimizer's step for every array. */
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
