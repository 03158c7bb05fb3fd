// Optimizers by their names.
import { notOneOf } from '../checks.js';
import { Adam, AdaMax, AdamW, LAMB, Nadam } from './adam.js';
import type {
  AdaMaxOptions,
  AdamOptions,
  AdamWOptions,
  LAMBOptions,
  NadamOptions,
} from './adam.js';
import { AdaDelta, AdaGrad, FTML, Ftrl, GroupAdaGrad, RMSProp } from './adaptive.js';
import type {
  AdaDeltaOptions,
  AdaGradOptions,
  FTMLOptions,
  FtrlOptions,
  GroupAdaGradOptions,
  RMSPropOptions,
} from './adaptive.js';
import type { Optimizer, OptimizerOptions } from './optimizer.js';
import { DCASGD, LARS, LBSGD, SGD, SGLD, Signum, Test } from './sgd.js';
import type {
  DCASGDOptions,
  LARSOptions,
  LBSGDOptions,
  SGDOptions,
  SGLDOptions,
  SignumOptions,
} from './sgd.js';

/** The options of each optimizer by name. */
export interface OptimizerOptionsByName {
  /** Of {@link AdaDelta}. */
  adadelta: AdaDeltaOptions;
  /** Of {@link AdaGrad}. */
  adagrad: AdaGradOptions;
  /** Of {@link Adam}. */
  adam: AdamOptions;
  /** Of {@link AdaMax}. */
  adamax: AdaMaxOptions;
  /** Of {@link AdamW}. */
  adamw: AdamWOptions;
  /** Of {@link DCASGD}. */
  dcasgd: DCASGDOptions;
  /** Of {@link FTML}. */
  ftml: FTMLOptions;
  /** Of {@link Ftrl}. */
  ftrl: FtrlOptions;
  /** Of {@link GroupAdaGrad}. */
  groupadagrad: GroupAdaGradOptions;
  /** Of {@link LAMB}. */
  lamb: LAMBOptions;
  /** Of {@link LARS}. */
  lars: LARSOptions;
  /** Of {@link LBSGD}. */
  lbsgd: LBSGDOptions;
  /** Of {@link Nadam}. */
  nadam: NadamOptions;
  /** Of {@link SGD} with Nesterov's momentum. */
  nag: Omit<SGDOptions, 'nesterov'>;
  /** Of {@link RMSProp}. */
  rmsprop: RMSPropOptions;
  /** Of {@link SGD}. */
  sgd: SGDOptions;
  /** Of {@link SGLD}. */
  sgld: SGLDOptions;
  /** Of {@link Signum}. */
  signum: SignumOptions;
  /** Of {@link Test}. */
  test: OptimizerOptions;
}

/** A name for {@link createOptimizer}. */
export type OptimizerName = keyof OptimizerOptionsByName;

const makers: {
  readonly [Name in OptimizerName]: (options: OptimizerOptionsByName[Name]) => Optimizer;
} = {
  adadelta: (options) => new AdaDelta(options),
  adagrad: (options) => new AdaGrad(options),
  adam: (options) => new Adam(options),
  adamax: (options) => new AdaMax(options),
  adamw: (options) => new AdamW(options),
  dcasgd: (options) => new DCASGD(options),
  ftml: (options) => new FTML(options),
  ftrl: (options) => new Ftrl(options),
  groupadagrad: (options) => new GroupAdaGrad(options),
  lamb: (options) => new LAMB(options),
  lars: (options) => new LARS(options),
  lbsgd: (options) => new LBSGD(options),
  nadam: (options) => new Nadam(options),
  nag: (options) => new SGD({ ...options, nesterov: true }),
  rmsprop: (options) => new RMSProp(options),
  sgd: (options) => new SGD(options),
  sgld: (options) => new SGLD(options),
  signum: (options) => new Signum(options),
  test: (options) => new Test(options),
};

/** The names for {@link createOptimizer}; `nag` is {@link SGD} with `nesterov`. */
export const optimizerNames = Object.keys(makers) as readonly OptimizerName[];

/**
 * Creates an optimizer by name, like MXNet's `optimizer.create`; case is ignored.
 *
 * @throws TypeError for an unknown name, listing the known ones and the likely one.
 */
export function createOptimizer<Name extends OptimizerName>(
  name: Name,
  options?: OptimizerOptionsByName[Name],
): Optimizer;
export function createOptimizer(name: string, options?: OptimizerOptions): Optimizer;
export function createOptimizer(name: string, options: OptimizerOptions = {}): Optimizer {
  const known = typeof name === 'string' ? name.toLowerCase() : '';
  if (!Object.hasOwn(makers, known)) {
    throw notOneOf(name, 'optimizer', optimizerNames);
  }
  return makers[known as OptimizerName](options);
}
