// Optimizers that scale steps by a history of gradients.
import { argumentError } from '../errors.js';
import { Optimizer } from './optimizer.js';
import type { OptimizerOptions } from './optimizer.js';

/** Options of {@link AdaGrad}. */
export interface AdaGradOptions extends OptimizerOptions {
  /** Keeps the root from 0 (MXNet's `eps`). Default 1e-7. */
  readonly epsilon?: number;
}

/** AdaGrad: `h += g^2; w -= lr * (g / sqrt(h + epsilon) + wd * w)`. Learning rate 0.01 by default. */
export class AdaGrad extends Optimizer {
  constructor(options: AdaGradOptions = {}) {
    super('adagrad', options);
  }
}

/** Options of {@link GroupAdaGrad}. */
export interface GroupAdaGradOptions extends Omit<OptimizerOptions, 'wd' | 'wdMult'> {
  /** Keeps the root from 0 (MXNet's `eps`). Default 1e-5. */
  readonly epsilon?: number;
}

/**
 * AdaGrad with one history value per row, for embeddings: `h += mean of g^2 over the row; w -= lr * g / sqrt(h +
 * epsilon)`. Rows follow from the shape given to a store's `init` or to {@link Optimizer.update}. No weight decay.
 * Learning rate 0.01 by default. Not on GPUs.
 */
export class GroupAdaGrad extends Optimizer {
  constructor(options: GroupAdaGradOptions = {}) {
    super('groupadagrad', options);
    const { wd = 0 } = this.spec.numbers;
    if (wd !== 0) {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'wd', '0: GroupAdaGrad has no weight decay', wd);
    }
  }
}

/** Options of {@link RMSProp}. */
export interface RMSPropOptions extends OptimizerOptions {
  /** Decay of the averages. Default 0.9. */
  readonly gamma1?: number;
  /** Momentum of the centered version. Default 0.9. */
  readonly gamma2?: number;
  /** Default 1e-8. */
  readonly epsilon?: number;
  /** Graves' version, which subtracts the mean. Default false. */
  readonly centered?: boolean;
  /** Bound of the weights' absolute values; null for none. Default null. */
  readonly clipWeights?: number | null;
}

/**
 * RMSProp. Learning rate 0.001 by default. With g = clip(rescaleGrad * gradient + wd * w) and
 * `n = gamma1 * n + (1 - gamma1) * g^2`: `w -= lr * g / sqrt(n + epsilon)`; centered, with the mean a of g likewise:
 * `d = gamma2 * d - lr * g / sqrt(n - a^2 + epsilon); w += d`.
 */
export class RMSProp extends Optimizer {
  constructor(options: RMSPropOptions = {}) {
    super('rmsprop', options);
  }
}

/** Options of {@link AdaDelta}. */
export interface AdaDeltaOptions extends OptimizerOptions {
  /** Decay of both averages. Default 0.9. */
  readonly rho?: number;
  /** Default 1e-5. */
  readonly epsilon?: number;
}

/**
 * AdaDelta, which has no learning rate: `G = rho * G + (1 - rho) * g^2`, `d = sqrt(D + epsilon) / sqrt(G + epsilon) * g`,
 * `D = rho * D + (1 - rho) * d^2`, `w -= d + wd * w`.
 */
export class AdaDelta extends Optimizer {
  constructor(options: AdaDeltaOptions = {}) {
    super('adadelta', options);
  }
}

/** Options of {@link Ftrl}. */
export interface FtrlOptions extends OptimizerOptions {
  /** Strength of the L1 term (MXNet's `lamda1`). Default 0.01. */
  readonly lambda1?: number;
  /** Default 1. */
  readonly beta?: number;
}

/**
 * Follow the regularised leader. Learning rate 0.1 by default.
 *
 * `z += g - (sqrt(n + g^2) - sqrt(n)) * w / lr; n += g^2`, then
 * `w = (sign(z) * lambda1 - z) / ((beta + sqrt(n)) / lr + wd)` where |z| > lambda1, else 0.
 */
export class Ftrl extends Optimizer {
  constructor(options: FtrlOptions = {}) {
    super('ftrl', options);
  }
}

/** Options of {@link FTML}. */
export interface FTMLOptions extends OptimizerOptions {
  /** Default 0.6. */
  readonly beta1?: number;
  /** Decay of the squares. Default 0.999. */
  readonly beta2?: number;
  /** Default 1e-8. */
  readonly epsilon?: number;
}

/**
 * Follow the moving leader. Learning rate 0.01 by default. Not on GPUs.
 *
 * With g = clip(rescaleGrad * gradient + wd * w) and `v = beta2 * v + (1 - beta2) * g^2`:
 * `d' = (1 - beta1^t) / lr * (sqrt(v / (1 - beta2^t)) + epsilon)`, `z = beta1 * z + (1 - beta1) * g - (d' - beta1 * d) * w`,
 * `w = -z / d'`.
 */
export class FTML extends Optimizer {
  constructor(options: FTMLOptions = {}) {
    super('ftml', options);
  }
}
