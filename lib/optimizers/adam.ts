// Optimizers with a mean and a variance.
import { Optimizer } from './optimizer.js';
import type { OptimizerOptions } from './optimizer.js';

/** Options of {@link Adam}. */
export interface AdamOptions extends OptimizerOptions {
  /** Decay of the mean. Default 0.9. */
  readonly beta1?: number;
  /** Decay of the variance. Default 0.999. */
  readonly beta2?: number;
  /** Keeps the denominator from 0. Default 1e-8; AdamW and LAMB 1e-6. */
  readonly epsilon?: number;
  /**
   * Whether a push of rows leaves other rows and their moments unchanged. Otherwise their gradient is 0, and decay and
   * moments continue. Default true, as in MXNet 1.9.1.
   */
  readonly lazyUpdate?: boolean;
}

/**
 * Adam. Learning rate 0.001 by default.
 *
 * With g = clip(rescaleGrad * gradient + wd * w) and t the key's update count: `m = beta1 * m + (1 - beta1) * g`,
 * `v = beta2 * v + (1 - beta2) * g^2`, `w -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)`.
 */
export class Adam extends Optimizer {
  constructor(options: AdamOptions = {}) {
    super('adam', options);
  }
}

/** Options of {@link AdamW}. */
export interface AdamWOptions extends Omit<AdamOptions, 'lazyUpdate'> {
  /** Default true. */
  readonly biasCorrection?: boolean;
}

/**
 * Adam with decoupled weight decay. Learning rate 0.001 by default. MXNet 1.9.1 has only the operator; the defaults are
 * those of its later class.
 *
 * Moments as in {@link Adam} with g = clip(rescaleGrad * gradient); `w -= lr' * (m / (sqrt(v) + epsilon) + wd * w)`
 * with lr' = lr * sqrt(1 - beta2^t) / (1 - beta1^t), or lr without bias correction.
 */
export class AdamW extends Optimizer {
  constructor(options: AdamWOptions = {}) {
    super('adamw', options);
  }
}

/** Options of {@link LAMB}. */
export interface LAMBOptions extends AdamWOptions {
  /** Lower bound of the weights' norm in the trust ratio; null for none. Default null. */
  readonly lowerBound?: number | null;
  /** Upper bound of the weights' norm in the trust ratio; null for none. Default null. */
  readonly upperBound?: number | null;
}

/**
 * Layer-wise adaptive moments. Learning rate 0.001 by default.
 *
 * Moments as in {@link AdamW}, divided by 1 - beta^t with bias correction; direction `d = m / (sqrt(v) + epsilon) + wd
 * * w`; `w -= lr * |w| / |d| * d`, with ratio 1 if a norm is 0.
 */
export class LAMB extends Optimizer {
  constructor(options: LAMBOptions = {}) {
    super('lamb', options);
  }
}

/** Options of {@link AdaMax}. */
export type AdaMaxOptions = Omit<AdamOptions, 'epsilon'>;

/**
 * Adam with the largest gradient in place of the variance. Learning rate 0.002 by default. Not on GPUs.
 *
 * With g and m as {@link Adam}'s: `u = max(beta2 * u, |g|)`, `w -= lr / (1 - beta1^t) * m / u`; where u is 0, which MXNet
 * divides by, the weight stays.
 */
export class AdaMax extends Optimizer {
  constructor(options: AdaMaxOptions = {}) {
    super('adamax', options);
  }
}

/** Options of {@link Nadam}. */
export interface NadamOptions extends AdamOptions {
  /** How fast the momentum rises to beta1. Default 0.004. */
  readonly scheduleDecay?: number;
}

/**
 * Adam with Nesterov's momentum. Learning rate 0.001 by default. Not on GPUs.
 *
 * With g, m and v as {@link Adam}'s, `mu(t) = beta1 * (1 - 0.5 * 0.96^(t * scheduleDecay))` and P the product of mu(1)
 * to mu(t): `d = (1 - mu(t)) * g / (1 - P) + mu(t + 1) * m / (1 - P * mu(t + 1))`, `w -= lr * d / (sqrt(v / (1 -
 * beta2^t)) + epsilon)`. The product is per key; MXNet multiplies those of all keys.
 */
export class Nadam extends Optimizer {
  constructor(options: NadamOptions = {}) {
    super('nadam', options);
  }
}
