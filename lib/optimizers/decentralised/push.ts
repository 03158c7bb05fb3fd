// Methods for directed graphs whose ranks know only to how many they send: what is kept is the sum, and a number that went
// the same way says how much of it each rank holds.
import { aFunction, optionNames } from '../../checks.js';
import { commonNames, like, prepare, subtract } from './prepare.js';
import type { Combine, DecentralisedMethod, DecentralisedOptions, Vector } from './types.js';

const pushNames = optionNames<PushOptions>({ ...commonNames, push: true });

/** Of {@link pushDiging} and {@link pushSumSgd}. */
export interface PushOptions<V extends Vector = Vector> extends DecentralisedOptions<V> {
  /**
   * Adds up what the sources send, in place, where what each rank sends (its own share included) sums to one: on
   * directed graphs whose ranks know only to how many they send.
   */
  readonly push: Combine<V>;
}

/**
 * Push-sum SGD, also called stochastic gradient push: `u ← P(u − a g(w))`, `v ← P(v)`, `w ← u / v`; u and v travel together. With a
 * constant step size it ends near the minimum; the rest shrinks with the step size.
 */
export function pushSumSgd<V extends Vector>(options: PushOptions<V>): DecentralisedMethod {
  const { parameters, evaluate, rate, given } = prepare(options, pushNames, 'pushSumSgd');
  const push = aFunction(given.push, 'push');
  const n = parameters.length;
  // u and v, one after the other.
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
 * Push-DIGing: gradient tracking where sums are kept instead of averages, for directed graphs. `u ← P(u − a q)`,
 * `v ← P(v)`, `w ← u / v`, `q ← P(q) + g(w new) − g(w)`; u, v and q travel together.
 */
export function pushDiging<V extends Vector>(options: PushOptions<V>): DecentralisedMethod {
  const { parameters, evaluate, rate, given } = prepare(options, pushNames, 'pushDiging');
  const push = aFunction(given.push, 'push');
  const n = parameters.length;
  const before = like(parameters);
  // u, q and v, one after the other.
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
