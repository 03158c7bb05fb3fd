// Methods for directed graphs whose ranks know only the number of their destinations: they keep sums, and a number with
// the same transfers tells each rank's share.
import { aFunction, optionNames } from '../../checks.js';
import { commonNames, like, prepare, subtract } from './prepare.js';
import type { Combine, DecentralisedMethod, DecentralisedOptions, Vector } from './types.js';

const pushNames = optionNames<PushOptions>({ ...commonNames, push: true });

/** Options of {@link pushDiging} and {@link pushSumSgd}. */
export interface PushOptions<V extends Vector = Vector> extends DecentralisedOptions<V> {
  /**
   * Sums the sources' data in place. The weights of each rank's outgoing data, including its own share, must sum to
   * one.
   */
  readonly push: Combine<V>;
}

/**
 * Push-sum SGD, also called stochastic gradient push: `u ← P(u − a g(w))`, `v ← P(v)`, `w ← u / v`; u and v are sent
 * together. With a constant step size it ends near the minimum; the distance shrinks with the step size.
 */
export function pushSumSgd<V extends Vector>(options: PushOptions<V>): DecentralisedMethod {
  const { parameters, evaluate, rate, given } = prepare(options, pushNames, 'pushSumSgd');
  const push = aFunction(given.push, 'push');
  const n = parameters.length;
  // u and v, concatenated.
  const sums = like(parameters, n + 1);
  let started = false;
  return {
    async step() {
      const gradient = await evaluate();
      if (!started) {
        sums.set(parameters);
        sums[n] = 1;
        started = true;
      }
      subtract(sums, gradient, rate());
      await push(sums);
      for (let i = 0; i < n; ++i) parameters[i] = sums[i]! / sums[n]!;
    },
  };
}

/**
 * Push-DIGing: gradient tracking with sums instead of averages, for directed graphs. `u ← P(u − a q)`, `v ← P(v)`, `w ←
 * u / v`, `q ← P(q) + g(w new) − g(w)`; u, v and q are sent together.
 */
export function pushDiging<V extends Vector>(options: PushOptions<V>): DecentralisedMethod {
  const { parameters, evaluate, rate, given } = prepare(options, pushNames, 'pushDiging');
  const push = aFunction(given.push, 'push');
  const n = parameters.length;
  const before = like(parameters);
  // u, q and v, concatenated.
  const sums = like(parameters, 2 * n + 1);
  let started = false;
  return {
    async step() {
      if (!started) {
        before.set(await evaluate());
        sums.set(parameters);
        sums.set(before, n);
        sums[2 * n] = 1;
        started = true;
      }
      const a = rate();
      for (let i = 0; i < n; ++i) sums[i]! -= a * sums[n + i]!;
      await push(sums);
      for (let i = 0; i < n; ++i) parameters[i] = sums[i]! / sums[2 * n]!;
      const gradient = await evaluate();
      for (let i = 0; i < n; ++i) sums[n + i]! += gradient[i]! - before[i]!;
      before.set(gradient);
    },
  };
}
