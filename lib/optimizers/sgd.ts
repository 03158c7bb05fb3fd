// Gradient descent and what steps like it: options and formulas.
import { oneOf } from '../checks.js';
import { Optimizer } from './optimizer.js';
import type { OptimizerOptions } from './optimizer.js';
import { checkedObject } from './optimizer-options.js';

/** Options of {@link SGD}. */
export interface SGDOptions extends OptimizerOptions {
  /** Default 0: none, and no state. */
  readonly momentum?: number;
  /** Nesterov's momentum: MXNet's NAG. Without momentum it changes nothing. Default false. */
  readonly nesterov?: boolean;
  /**
   * Whether a push of rows leaves the other rows and their momentum as they are; otherwise their gradient is 0, and
   * decay and momentum go on. Default true, as in MXNet 1.9.1.
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
  /** Weight decay that stays out of gradient and momentum. Default 0. */
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
 * Layer-wise adaptive rate scaling over {@link SGD}. Learning rate 0.01 by default.
 *
 * The rate of an array is multiplied by `eta * |w| / (|g| + wd * |w| + epsilon)`, where both norms are above 0 and the
 * array's name (or key) does not end in gamma, beta or bias; |g| is the norm before clipping. Named parameters whose name
 * does not end in `_weight` have no weight decay. The change of the rate that corrects the momentum is that of the same
 * key, where MXNet takes that of whichever key came before.
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
  /** How much of the delay is compensated (MXNet's `lamda`). Default 0.04. */
  readonly lambda?: number;
}

/**
 * Gradient descent that compensates delayed gradients of asynchronous workers. Learning rate 0.01 by default. Not on GPUs.
 *
 * With w' the weights before the last update: `m = momentum * m - lr * (g + wd * w + lambda * g^2 * (w - w'))`, `w += m`.
 */
export class DCASGD extends Optimizer {
  constructor(options: DCASGDOptions = {}) {
    super('dcasgd', options);
  }
}

/** How the rate of {@link LBSGD} rises: `'lars'` in place of a warm-up takes it from the norms of weights and gradient. */
export type LBSGDWarmup = 'linear' | 'power2' | 'sqrt' | 'lars';
/** By the number that the addon has for each. */
const warmups: readonly LBSGDWarmup[] = ['linear', 'power2', 'sqrt', 'lars'];

/** Options of {@link LBSGD}. */
export interface LBSGDOptions extends OptimizerOptions {
  /** Default 0. */
  readonly momentum?: number;
  /** Pushes whose mean is one step; the rate rises to so many times itself. Default 1. */
  readonly batchScale?: number;
  /** Default `'linear'`. */
  readonly warmupStrategy?: LBSGDWarmup;
  /** Epochs until the rate is reached. Default 5. */
  readonly warmupEpochs?: number;
  /** Pushes in an epoch. Default 32. */
  readonly updatesPerEpoch?: number;
  /** Where training goes on. Default 0. */
  readonly beginEpoch?: number;
}

/**
 * Gradient descent for large batches. Learning rate 0.01 by default. Not on GPUs.
 *
 * Gathers `batchScale` pushes of a key, then takes {@link SGD}'s step of their mean. With n pushes of the N in
 * `warmupEpochs` epochs the rate is multiplied by `1 + (batchScale - 1) * f(n / N)`, where f is x, x^2 or the root of x;
 * or, with `'lars'`, by `sqrt(|w|^2 / (|g|^2 + wd * |w|^2))`, from 0.01 to 100.
 */
export class LBSGD extends Optimizer {
  constructor(options: LBSGDOptions = {}) {
    super('lbsgd', numbered(options));
  }
}

/** The options as the addon takes them. */
function numbered(options: LBSGDOptions): OptimizerOptions {
  const { warmupStrategy, ...others } = checkedObject(options, 'options') as LBSGDOptions;
  if (warmupStrategy === undefined) return others;
  const number = warmups.indexOf(oneOf(warmupStrategy, 'warmupStrategy', warmups));
  return { ...others, warmupStrategy: number } as OptimizerOptions;
}

/** Options of {@link SGLD}. */
export interface SGLDOptions extends OptimizerOptions {
  /** The noise of a run; another number gives another. Default 0. */
  readonly seed?: number;
}

/**
 * Stochastic gradient Langevin dynamics: gradient descent with noise, which samples from the weights' distribution.
 * Learning rate 0.01 by default. Not on GPUs.
 *
 * `w = w - lr / 2 * (g + wd * w) + N(0, lr)`. The noise is of the seed, the key and the number of its update: the same in
 * every run, on every machine and however a key is cut over servers, and another for every key. Workers that step
 * themselves, each in a `local` store, give seeds of their own.
 */
export class SGLD extends Optimizer {
  constructor(options: SGLDOptions = {}) {
    super('sgld', options);
  }
}

/** `w += rescaleGrad * gradient`: MXNet 1.9.1's optimizer for tests of stores. Nothing else has an effect. */
export class Test extends Optimizer {
  constructor(options: OptimizerOptions = {}) {
    super('test', options);
  }
}
