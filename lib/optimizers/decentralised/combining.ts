// Methods that average with neighbours in every step; each rank has its own parameters. w: parameters, g: gradient of
// the rank's loss, a: step size, C: averaging.
import { aFunction, optionNames } from '../../checks.js';
import { commonNames, like, prepare, subtract } from './prepare.js';
import type { Combine, DecentralisedMethod, DecentralisedOptions, Vector } from './types.js';

const combiningNames = optionNames<CombiningOptions>({ ...commonNames, combine: true });

/** Options of methods with one averaging per step. */
export interface CombiningOptions<V extends Vector = Vector> extends DecentralisedOptions<V> {
  /** Must have doubly stochastic weights, so that all ranks end at the minimum of the sum. */
  readonly combine: Combine<V>;
}

/**
 * Adapt with combine: `w ← C(w) − a g(w)`. The averaging and the gradient run in parallel. With a constant step size it
 * ends near the minimum; the distance shrinks with the step size.
 */
export function adaptWithCombine<V extends Vector>(
  options: CombiningOptions<V>,
): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'adaptWithCombine');
  const { averaged, beside } = averagingBeside(parameters, evaluate, combine);
  return {
    async step() {
      const gradient = await beside();
      const a = rate();
      for (let i = 0; i < parameters.length; ++i) {
        parameters[i] = averaged[i]! - a * gradient[i]!;
      }
    },
  };
}

/** Adapt, then combine: `w ← C(w − a g(w))`. Like {@link adaptWithCombine}, slightly closer to the minimum. */
export function adaptThenCombine<V extends Vector>(
  options: CombiningOptions<V>,
): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'adaptThenCombine');
  return {
    async step() {
      subtract(parameters, await evaluate(), rate());
      await combine(parameters);
    },
  };
}

/**
 * Gradient all-reduce: `w ← w − a C(g(w))`, where C averages over all ranks: `comm.allReduce(g, { op: 'avg' })`. Ranks
 * that start equal stay equal.
 */
export function gradientAllReduce<V extends Vector>(
  options: CombiningOptions<V>,
): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'gradientAllReduce');
  return {
    async step() {
      const gradient = await evaluate();
      await combine(gradient);
      subtract(parameters, gradient, rate());
    },
  };
}

/**
 * Gradient tracking: `w ← C(w) − a q`, `q ← C(q) + g(w new) − g(w)`, q first g. Reaches the exact minimum with a
 * constant step size, also on changing graphs. This requires averaging w and q with the same neighbours, so `combine`
 * gets both in one vector of twice the length, once per step.
 */
export function gradientTracking<V extends Vector>(
  options: CombiningOptions<V>,
): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'gradientTracking');
  const n = parameters.length;
  const before = like(parameters);
  // w and q, concatenated.
  const both = like(parameters, 2 * n);
  const q = both.subarray(n);
  let tracked: V | undefined;
  return {
    async step() {
      if (tracked === undefined) {
        before.set(await evaluate());
        tracked = before.slice() as V;
      }
      both.set(parameters);
      both.set(tracked, n);
      await combine(both);
      parameters.set(both.subarray(0, n));
      subtract(parameters, tracked, rate());
      const gradient = await evaluate();
      for (let i = 0; i < n; ++i) tracked[i] = q[i]! + gradient[i]! - before[i]!;
      before.set(gradient);
    },
  };
}

/**
 * Exact diffusion: `p ← w − a g(w)`, `w ← C̄(p + w − p before)` with `C̄ = (C + I) / 2`, p first w. Reaches the exact
 * minimum with a constant step size; C must be symmetric.
 */
export function exactDiffusion<V extends Vector>(
  options: CombiningOptions<V>,
): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'exactDiffusion');
  const before = parameters.slice();
  const mixed = like(parameters);
  return {
    async step() {
      const gradient = await evaluate();
      const a = rate();
      for (let i = 0; i < parameters.length; ++i) {
        const now = parameters[i]! - a * gradient[i]!;
        mixed[i] = now + parameters[i]! - before[i]!;
        before[i] = now;
      }
      parameters.set(mixed);
      await combine(mixed);
      for (let i = 0; i < parameters.length; ++i) {
        parameters[i] = (parameters[i]! + mixed[i]!) / 2;
      }
    },
  };
}

/**
 * EXTRA: `w ← C(w) − a g(w)` at first, then `w new ← w + C(w) − (w before + C(w before)) / 2 − a (g(w) − g(w before))`.
 * Reaches the exact minimum with a constant step size; C must be symmetric and constant.
 */
export function extra<V extends Vector>(options: CombiningOptions<V>): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'extra');
  const { averaged, beside } = averagingBeside(parameters, evaluate, combine);
  const last = { parameters: like(parameters), averaged: like(parameters), step: like(parameters) };
  let first = true;
  return {
    async step() {
      const gradient = await beside();
      const a = rate();
      for (let i = 0; i < parameters.length; ++i) {
        const w = parameters[i]!;
        const own = a * gradient[i]!;
        const corrected = w - (last.parameters[i]! + last.averaged[i]!) / 2 + last.step[i]!;
        parameters[i] = averaged[i]! - own + (first ? 0 : corrected);
        last.parameters[i] = w;
        last.averaged[i] = averaged[i]!;
        last.step[i] = own;
      }
      first = false;
    },
  };
}

/** Averages the current parameters while the gradient is computed. */
function averagingBeside<V extends Vector>(
  parameters: V,
  evaluate: () => Promise<V>,
  combine: (vector: V) => unknown,
) {
  const averaged = like(parameters);
  return {
    averaged,
    beside: async (): Promise<V> => {
      averaged.set(parameters);
      const [gradient] = await Promise.all([evaluate(), combine(averaged)]);
      return gradient;
    },
  };
}

/** The common state of averaging methods: that of {@link prepare}, and the averaging. */
function combining<V extends Vector>(options: CombiningOptions<V>, owner: string) {
  const prepared = prepare(options, combiningNames, owner);
  return { ...prepared, combine: aFunction(prepared.given.combine, 'combine') };
}
