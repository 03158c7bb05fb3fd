// Gradient descent and its variants.
import { oneOf } from '../checks.js';
import { Optimizer } from './optimizer.js';
import type { OptimizerOptions } from './optimizer.js';
import { checkedObject } from './optimizer-options.js';

/** Options of {@link SGD}. */
export interface SGDOptions extends OptimizerOptions {
  /** Default 0: none, and no state. */
  readonly momentum?: number;
  /** Nesterov's momentum, MXNet's NAG. No effect without momentum. Default false. */
  readonly nesterov?: boolean;
  /**
   * Whether a push of rows leaves other rows and their momentum unchanged. Otherwise their gradient is 0, and decay and
   * momentum continue. Default true, as in MXNet 1.9.1.
   */
  readonly lazyUpdate?: boolean;
}

/**
 * Stochastic gradient descent. Learning rate 0.01 by default.
 *
 * With g = clip(rescaleGrad * gradient): `w = (1 - lr * wd) * w - lr * g`; with momentum
 * `m = momentum * m - lr * wd * w - lr * g; w += m`; with nesterov
 * `m' = momentum * m - lr * (g + wd * w); w += (1 + momentum) * m' - momentum * m`.
 */
export class SGD extends Optimizer {
  constructor(options: SGDOptions = {}) {
    super('sgd', options);
  }
}

/** Options of {@link Signum}. */
export interface SignumOptions extends OptimizerOptions {
  /** Default 0.9. 0 is signSGD: the sign of the gradient, and no state. */
  readonly momentum?: number;
  /** Weight decay outside of gradient and momentum. Default 0. */
  readonly wdLh?: number;
}

/**
 * Steps by the sign of the momentum. Learning rate 0.01 by default.
 *
 * `m = momentum * m - (1 - momentum) * (wd * w + g); w = (1 - lr * wdLh) * w + lr * sign(m)`; without momentum
 * `w = (1 - lr * wd) * w - lr * sign(g)`.
 */
export class Signum extends Optimizer {
  constructor(options: SignumOptions = {}) {
    super('signum', options);
  }
}

/** Options of {@link LARS}. */
export interface LARSOptions extends OptimizerOptions {
  /** Default 0. */
  readonly momentum?: number;
  /** The trust coefficient. Default 0.001. */
  readonly eta?: number;
  /** Added to the denominator of the trust ratio. Default 0. */
  readonly epsilon?: number;
  /** Scales the momentum by the change of the rate since the key's last update. Default true. */
  readonly momentumCorrection?: boolean;
}

/**
 * Layer-wise adaptive rate scaling on {@link SGD}. Learning rate 0.01 by default.
 *
 * The rate of an array is multiplied by `eta * |w| / (|g| + wd * |w| + epsilon)`, if both norms are above 0 and the
 * array's name (or key) does not end in gamma, beta or bias; |g| is the norm before clipping. Named parameters whose
 * name does not end in `_weight` have no weight decay. The momentum is corrected by the same key's change of rate;
 * MXNet uses the previous key's, whichever that is.
 */
export class LARS extends Optimizer {
  constructor(options: LARSOptions = {}) {
    super('lars', options);
  }
}

/** Options of {@link DCASGD}. */
export interface DCASGDOptions extends OptimizerOptions {
  /** Default 0. */
  readonly momentum?: number;
  /** Compensation of the delay (MXNet's `lamda`). Default 0.04. */
  readonly lambda?: number;
}

/**
 * Gradient descent with compensation for delayed gradients of asynchronous workers. Learning rate 0.01 by default. Not
 * on GPUs.
 *
 * With w' as the weights before the last update: `m = momentum * m - lr * (g + wd * w + lambda * g^2 * (w - w'))`, `w
 * += m`.
 */
export class DCASGD extends Optimizer {
  constructor(options: DCASGDOptions = {}) {
    super('dcasgd', options);
  }
}

/** How the rate of {@link LBSGD} rises: `'lars'` replaces the warm-up by the norms of weights and gradient. */
export type LBSGDWarmup = 'linear' | 'power2' | 'sqrt' | 'lars';
/** In the order of the addon's numbers. */
const warmups: readonly LBSGDWarmup[] = ['linear', 'power2', 'sqrt', 'lars'];

/** Options of {@link LBSGD}. */
export interface LBSGDOptions extends OptimizerOptions {
  /** Default 0. */
  readonly momentum?: number;
  /** Pushes per step, which uses their mean; the rate rises by this factor. Default 1. */
  readonly batchScale?: number;
  /** Default `'linear'`. */
  readonly warmupStrategy?: LBSGDWarmup;
  /** Epochs of warm-up. Default 5. */
  readonly warmupEpochs?: number;
  /** Pushes per epoch. Default 32. */
  readonly updatesPerEpoch?: number;
  /** The epoch to resume from. Default 0. */
  readonly beginEpoch?: number;
}

/**
 * Gradient descent for large batches. Learning rate 0.01 by default. Not on GPUs.
 *
 * Accumulates `batchScale` pushes of a key, then makes {@link SGD}'s step with their mean. After n of the N pushes in
 * `warmupEpochs` epochs the rate is multiplied by `1 + (batchScale - 1) * f(n / N)`, where f is x, x^2 or the root of
 * x, or with `'lars'` by `sqrt(|w|^2 / (|g|^2 + wd * |w|^2))`, from 0.01 to 100.
 */
export class LBSGD extends Optimizer {
  constructor(options: LBSGDOptions = {}) {
    super('lbsgd', numbered(options));
  }
}

/** The options in the addon's form. */
function numbered(options: LBSGDOptions): OptimizerOptions {
  const { warmupStrategy, ...others } = checkedObject(options, 'options') as LBSGDOptions;
  if (warmupStrategy === undefined) return others;
  const number = warmups.indexOf(oneOf(warmupStrategy, 'warmupStrategy', warmups));
  return { ...others, warmupStrategy: number } as OptimizerOptions;
}

/** Options of {@link SGLD}. */
export interface SGLDOptions extends OptimizerOptions {
  /** Seed of the noise. Default 0. */
  readonly seed?: number;
}

/**
 * Stochastic gradient Langevin dynamics: gradient descent with noise, which samples from the weights' distribution.
 * Learning rate 0.01 by default. Not on GPUs.
 *
 * `w = w - lr / 2 * (g + wd * w) + N(0, lr)`. The noise depends on the seed, the key and its number of updates, so it
 * is equal in every run, on every machine and for any sharding. Workers with their own `local` stores need different
 * seeds.
 */
export class SGLD extends Optimizer {
  constructor(options: SGLDOptions = {}) {
    super('sgld', options);
  }
}

/** `w += rescaleGrad * gradient`: MXNet 1.9.1's optimizer for tests of stores. Other options have no effect. */
export class Test extends Optimizer {
  constructor(options: OptimizerOptions = {}) {
    super('test', options);
  }
}
