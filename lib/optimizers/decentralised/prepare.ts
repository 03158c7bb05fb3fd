// The start of every decentralised method: validated options, the gradient and the step size.
import { argumentError } from '../../errors.js';
import { dtypeNumber } from '../../tensor/dtype.js';
import { isDetached } from '../../tensor/memory.js';
import { aFunction, type KnownOptions, optionsObject } from '../../checks.js';
import type { DecentralisedOptions, Vector } from './types.js';

/** The common options. */
export const commonNames = { parameters: true, gradient: true, stepSize: true } as const;

export function prepare<V extends Vector, O extends DecentralisedOptions<V>>(
  options: O & DecentralisedOptions<V>,
  known: KnownOptions,
  owner: string,
) {
  const given: O & DecentralisedOptions<V> = optionsObject(options, known, owner);
  const { parameters, stepSize } = given;
  const write = aFunction(given.gradient, 'gradient');
  if (!(parameters instanceof Float32Array || parameters instanceof Float64Array)) {
    const expected = 'a Float32Array or Float64Array';
    throw argumentError('ERR_INVALID_ARG_TYPE', 'parameters', expected, parameters);
  }
  // Also refuses proxies and detached arrays.
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

/** Zeros of the same type, by default of the same length. */
export function like<V extends Vector>(model: V, length = model.length): V {
  return new (model.constructor as new (length: number) => V)(length);
}

/** `from -= times * what`, in place, for the elements of `what`. */
export function subtract(from: Vector, what: Vector, times: number): void {
  for (let i = 0; i < what.length; ++i) from[i]! -= times * what[i]!;
}
