// What a store's pulls must give, computed without the store: sums in float64, the optimizer's own copy in float64,
// the compression by its definition. Outside every timed region.
import type { Optimizer } from '../../optimizers/index.js';
import { asNumbers, type GradientArray, type GradientType } from './gradients.js';

/** How a store compresses gradients: see `KVStore.setGradientCompression`. */
export interface Compression {
  readonly type: '2bit' | '1bit';
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

/** Compresses one gradient with its residual, in float32 as the stores do; adds the result to `sum`. */
function addCompressed(
  gradient: Float32Array | Float64Array,
  residual: Float32Array,
  sum: Float64Array,
  { type, threshold }: Compression,
): void {
  const limit = Math.fround(threshold);
  for (let i = 0; i < gradient.length; i += 1) {
    const rest = Math.fround((residual[i] ?? 0) + (gradient[i] ?? 0));
    let code: number;
    if (type === '1bit') code = rest > limit ? 1 : -1;
    else if (rest >= limit) code = limit;
    else code = rest <= -limit ? -limit : 0;
    residual[i] = rest - code;
    sum[i] = (sum[i] ?? 0) + code;
  }
}

function addPlain(gradient: Float32Array | Float64Array, sum: Float64Array): void {
  for (let i = 0; i < gradient.length; i += 1) sum[i] = (sum[i] ?? 0) + (gradient[i] ?? 0);
}

/** The expected values of one store; `compare` once a batch, since optimizers and residuals go on from it. */
export class StoreReference {
  private readonly weights: readonly Float64Array[] | undefined;
  private readonly residuals: readonly (readonly Float32Array[])[] | undefined;
  private readonly sum: Float64Array;
  private readonly scratch: Float32Array;
  private updates = 0;

  constructor(private readonly options: ReferenceOptions) {
    const { gradients, dtype, optimizer, compression } = options;
    const lengths = gradients.map(([first]) => first?.length ?? 0);
    const longest = Math.max(0, ...lengths);
    this.sum = new Float64Array(longest);
    this.scratch = new Float32Array(dtype === 'float32' || dtype === 'float64' ? 0 : longest);
    this.weights =
      optimizer === undefined ? undefined : lengths.map((length) => new Float64Array(length));
    this.residuals =
      compression === undefined
        ? undefined
        : this.compressed(gradients).map((arrays) =>
            arrays.map((one) => new Float32Array(one.length)),
          );
  }

  /** Bound of the error after the batches so far. */
  get tolerance(): number {
    const devices = this.options.gradients[0]?.length ?? 1;
    return errorTolerance(
      this.options.dtype,
      devices,
      this.weights === undefined ? 0 : this.updates,
    );
  }

  /**
   * Goes one batch on and compares.
   *
   * @param outs outs[array][device], as pulled; absent: only goes on
   */
  compare(outs?: readonly (readonly GradientArray[])[]): Comparison {
    this.updates += 1;
    let difference = 0;
    let magnitude = 0;
    let wrong = 0;
    for (let array = 0; array < this.options.gradients.length; array += 1) {
      const expected = this.expect(array);
      if (outs === undefined) continue;
      const size = sumOfMagnitudes(expected);
      magnitude += size;
      for (const out of outs[array] ?? []) {
        const got = asNumbers(out, this.options.dtype, this.scratch);
        const compared = this.compareArray(got, expected, size);
        difference += compared.difference;
        wrong += compared.wrong;
      }
    }
    const error = magnitude > 0 ? difference / magnitude : difference === 0 ? 0 : Infinity;
    return { error, wrong };
  }

  /** The arrays that are compressed one by one. */
  private compressed(
    gradients: readonly (readonly GradientArray[])[],
  ): readonly (readonly GradientArray[])[] {
    if (this.options.compressesSums !== true) return gradients;
    return gradients.map(([first, ...others]) => {
      const sum = Float32Array.from(first ?? []);
      for (const other of others) {
        for (let i = 0; i < sum.length; i += 1) sum[i] = (sum[i] ?? 0) + (other[i] ?? 0);
      }
      return [sum];
    });
  }

  /** What a pull of this array must give now. Valid until the next call. */
  private expect(array: number): Float64Array {
    const { gradients, dtype, workers, optimizer, compression } = this.options;
    const devices = gradients[array] ?? [];
    const sum = this.sum.subarray(0, devices[0]?.length ?? 0).fill(0);
    const summed = compression === undefined ? devices : (this.compressed([devices])[0] ?? []);
    summed.forEach((gradient, device) => {
      const numbers = asNumbers(gradient, dtype, this.scratch);
      const residual = this.residuals?.[array]?.[device];
      if (compression === undefined || residual === undefined) addPlain(numbers, sum);
      else addCompressed(numbers, residual, sum, compression);
    });
    for (let i = 0; workers > 1 && i < sum.length; i += 1) sum[i] = (sum[i] ?? 0) * workers;
    const weight = this.weights?.[array];
    if (optimizer === undefined || weight === undefined) return sum;
    optimizer.update(array, weight, sum);
    return weight;
  }

  /**
   * Sums are held to a bound element by element. Optimizers are not: where one takes a sign or a quotient, a rounding
   * next to zero may flip an element. There an array is wrong when it is off on the whole.
   */
  private compareArray(
    got: Float32Array | Float64Array,
    expected: Float64Array,
    magnitude: number,
  ): { difference: number; wrong: number } {
    const { gradients, dtype, compression, workers } = this.options;
    const devices = (gradients[0]?.length ?? 1) * workers;
    const largest = Math.max(1, compression?.threshold ?? 0);
    const bound =
      this.weights === undefined ? devices * devices * largest * roundoff[dtype] : Infinity;
    let difference = 0;
    let wrong = 0;
    for (let i = 0; i < expected.length; i += 1) {
      const off = Math.abs((got[i] ?? NaN) - (expected[i] ?? 0));
      difference += off;
      // Written so that a NaN counts as wrong.
      if (!(off <= bound)) wrong += 1;
    }
    if (this.weights !== undefined && !(difference <= this.tolerance * magnitude)) {
      wrong = Math.max(wrong, 1);
    }
    return { difference, wrong };
  }
}

function sumOfMagnitudes(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += Math.abs(value);
  return sum;
}
