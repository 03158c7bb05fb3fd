// Methods that average with neighbours in every step, each rank with its own parameters. w are the parameters, g the
// gradient of the own loss, a the step size, C the averaging.
import { aFunction, optionNames } from '../../checks.js';
import { commonNames, like, prepare, subtract } from './prepare.js';
import type { Combine, DecentralisedMethod, DecentralisedOptions, Vector } from './types.js';

const combiningNames = optionNames<CombiningOptions>({ ...commonNames, combine: true });

/** Of methods that average once a step. */
export interface CombiningOptions<V extends Vector = Vector> extends DecentralisedOptions<V> {
  /** Doubly stochastic weights, so that all end at the minimum of the sum. */
  readonly combine: Combine<V>;
}

/**
 * Adapt with combine: `w ← C(w) − a g(w)`. The averaging and the gradient run side by side. With a constant step size it
 * ends near the minimum; the rest shrinks with the step size.
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

/** Adapt, then combine: `w ← C(w − a g(w))`. As {@link adaptWithCombine}, a little nearer to the minimum. */
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
 * Gradient all-reduce: `w ← w − a C(g(w))`, where C averages over everybody: `comm.allReduce(g, { op: 'avg' })`. The
 * ranks stay equal if they start so.
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
 * Gradient tracking: `w ← C(w) − a q`, `q ← C(q) + g(w new) − g(w)`, q first g. Ends at the minimum itself with a
 * constant step size, on graphs that change too. w and q are averaged with the same neighbours, which is what makes it
 * exact: they travel together, so that `combine` gets a vector of twice the length, once a step.
 */
export function gradientTracking<V extends Vector>(
  options: CombiningOptions<V>,
): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'gradientTracking');
  const n = parameters.length;
  const before = like(parameters);
  // w and q, one after the other.
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
 * Exact diffusion: `p ← w − a g(w)`, `w ← C̄(p + w − p before)` with `C̄ = (C + I) / 2`, p first w. Ends at the minimum
 * itself with a constant step size; C symmetric.
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
 * EXTRA: `w ← C(w) − a g(w)` at first, then `w new ← w + C(w) − (w before + C(w before)) / 2 − a (g(w) − g(w before))`. Ends at
 * the minimum itself with a constant step size; C symmetric and always the same.
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

/** The average of the parameters as they are, while the gradient is taken. */
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

/** What methods that average have: {@link prepare}'s, and how. */
function combining<V extends Vector>(options: CombiningOptions<V>, owner: string) {
  const prepared = prepare(options, combiningNames, owner);
  return { ...prepared, combine: aFunction(prepared.given.combine, 'combine') };
}
