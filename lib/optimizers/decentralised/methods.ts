// Methods that minimise the sum of the ranks' losses, each rank with its own parameters, averaging with neighbours. w are
// the parameters, g the gradient of the own loss, a the step size, C the averaging.
import { argumentError } from '../../errors.js';
import { aFunction, having } from '../../kinds.js';
import { dtypeNumber } from '../../tensor/dtype.js';
import { isDetached } from '../../tensor/memory.js';
import { callback, optionNames, optionsObject } from '../../validate.js';
import type { KnownOptions } from '../../validate.js';
import type { Combine, DecentralisedMethod, DecentralisedOptions, Vector } from './types.js';

/** Of methods that average once a step or more. */
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
  const averaged = like(parameters);
  return {
    async step() {
      averaged.set(parameters);
      const [gradient] = await Promise.all([evaluate(), combine(averaged)]);
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
 * constant step size.
 */
export function gradientTracking<V extends Vector>(
  options: CombiningOptions<V>,
): DecentralisedMethod {
  const { combine, parameters, evaluate, rate } = combining(options, 'gradientTracking');
  const before = like(parameters);
  let tracked: V | undefined;
  return {
    async step() {
      if (tracked === undefined) {
        before.set(await evaluate());
        tracked = before.slice() as V;
      }
      const q = tracked;
      const a = rate();
      await combine(parameters);
      subtract(parameters, q, a);
      await combine(q);
      const gradient = await evaluate();
      for (let i = 0; i < q.length; ++i) q[i]! += gradient[i]! - before[i]!;
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

/** Of {@link pushDiging}. */
export interface PushOptions<V extends Vector = Vector> extends DecentralisedOptions<V> {
  /**
   * Adds up what the sources send, in place, where what each rank sends (its own share included) sums to one: on
   * directed graphs whose ranks know only to how many they send.
   */
  readonly push: Combine<V>;
}

/**
 * Push-DIGing: gradient tracking where sums are kept instead of averages, for directed graphs. `u ← P(u − a q)`,
 * `v ← P(v)`, `w ← u / v`, `q ← P(q) + g(w new) − g(w)`; u, v and q travel together.
 */
export function pushDiging<V extends Vector>(options: PushOptions<V>): DecentralisedMethod {
  const { parameters, evaluate, rate, given } = prepare(options, pushNames, 'pushDiging');
  const push = callback(given.push, 'push');
  const n = parameters.length;
  const before = like(parameters);
  // u, q and v, one after the other.
  const sums = new (parameters.constructor as new (length: number) => V)(2 * n + 1);
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

/** What {@link windowPut} needs of a window that is bound to the parameters. */
export interface PutWindow<V extends Vector = Vector> {
  /** Writes the values to the buffers that the destinations keep for this rank; they need not take part. */
  put(values: V): Promise<unknown>;
  /** Averages the parameters with what has come so far, in place. */
  update(): Promise<unknown>;
}

/** Of {@link windowPut}. */
export interface WindowPutMethodOptions<V extends Vector = Vector> extends DecentralisedOptions<V> {
  readonly window: PutWindow<V>;
}

/**
 * Window put: `w ← w − a g(w)`, put w where the destinations find it, average with what has come. No rank waits for
 * another: what a slow one put last is used again.
 */
export function windowPut<V extends Vector>(
  options: WindowPutMethodOptions<V>,
): DecentralisedMethod {
  const { parameters, evaluate, rate, given } = prepare(options, windowNames, 'windowPut');
  const { window } = given;
  putWindow(window, 'window');
  return {
    async step() {
      subtract(parameters, await evaluate(), rate());
      await window.put(parameters);
      await window.update();
    },
  };
}

const common = { parameters: true, gradient: true, stepSize: true } as const;
const combiningNames = optionNames<CombiningOptions>({ ...common, combine: true });
const pushNames = optionNames<PushOptions>({ ...common, push: true });
const windowNames = optionNames<WindowPutMethodOptions>({ ...common, window: true });

const putWindow = having({ put: aFunction, update: aFunction });

/** What methods that average have: {@link prepare}'s, and how. */
function combining<V extends Vector>(options: CombiningOptions<V>, owner: string) {
  const prepared = prepare(options, combiningNames, owner);
  return { ...prepared, combine: callback(prepared.given.combine, 'combine') };
}

function prepare<V extends Vector, O extends DecentralisedOptions<V>>(
  options: O & DecentralisedOptions<V>,
  known: KnownOptions,
  owner: string,
) {
  const given: O & DecentralisedOptions<V> = optionsObject(options, known, owner);
  const { parameters, stepSize } = given;
  const write = callback(given.gradient, 'gradient');
  if (!(parameters instanceof Float32Array || parameters instanceof Float64Array)) {
    const expected = 'a Float32Array or Float64Array';
    throw argumentError('ERR_INVALID_ARG_TYPE', 'parameters', expected, parameters);
  }
  // Also what only passes for one: a proxy, an array without memory, one whose length is made up.
  dtypeNumber(parameters, undefined, 'parameters');
  if (isDetached(parameters)) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'parameters', 'an array with memory', {
      text: 'one whose memory was transferred',
    });
  }
  if (
    typeof stepSize !== 'function' &&
    !(typeof stepSize === 'number' && stepSize >= 0 && stepSize < Infinity)
  ) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'stepSize', 'a number of at least 0', stepSize);
  }
  const gradient = like(parameters);
  let steps = 0;
  return {
    given,
    parameters,
    evaluate: async (): Promise<V> => {
      await write(parameters, gradient);
      return gradient;
    },
    rate: () => (typeof stepSize === 'function' ? stepSize(steps++) : stepSize),
  };
}

/** Zeros of the same type and length. */
function like<V extends Vector>(model: V): V {
  return new (model.constructor as new (length: number) => V)(model.length);
}

function subtract(from: Vector, what: Vector, times: number): void {
  for (let i = 0; i < from.length; ++i) from[i]! -= times * what[i]!;
}
