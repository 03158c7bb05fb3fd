// Gradient descent and what steps like it: options and formulas.
import { Optimizer } from './optimizer.js';
import type { OptimizerOptions } from './optimizer.js';

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

/** `w += rescaleGrad * gradient`: MXNet 1.9.1's optimizer for tests of stores. Nothing else has an effect. */
export class Test extends Optimizer {
  constructor(options: OptimizerOptions = {}) {
    super('test', options);
  }
}
