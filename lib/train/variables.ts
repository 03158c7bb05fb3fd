// Lists the variables to train.
import type { Variable } from '@tensorflow/tfjs-core';

import { argumentError } from '../errors.js';
import { arrayOf } from '../checks.js';
import type { GradientSpec } from './buckets/types.js';
import { tf } from './tfjs.js';
import type { Trainable, TrainableModel } from './types.js';

function isModel(given: unknown): given is TrainableModel {
  return typeof given === 'object' && given !== null && 'trainableWeights' in given;
}

function checked(list: readonly unknown[], name: string): Variable[] {
  return list.map((one): Variable => {
    if (!(one instanceof tf.Variable)) {
      throw argumentError('ERR_INVALID_ARG_TYPE', name, 'variables of TensorFlow.js', one);
    }
    return one as Variable;
  });
}

/**
 * The trainable variables, in the same order on every rank.
 *
 * @throws TypeError for other values, an empty list, and variables that are not float32.
 */
export function trainableVariables(given: Trainable): Variable[] {
  const list: unknown = isModel(given) ? given.trainableWeights.map((w) => w.read()) : given;
  if (!Array.isArray(list) || list.length === 0) {
    const expected = 'a model of TensorFlow.js or a list of variables, at least one to train';
    throw argumentError('ERR_INVALID_ARG_TYPE', 'model', expected, given);
  }
  const variables = checked(list, 'model').filter(({ trainable }) => trainable);
  const odd = variables.find(({ dtype }) => dtype !== 'float32');
  if (odd !== undefined) {
    throw argumentError('ERR_INVALID_ARG_TYPE', `variable ${odd.name}`, 'float32', {
      text: odd.dtype,
    });
  }
  return variables;
}

/** All existing trainable variables, as for `tf.variableGrads`. */
export function registeredVariables(): Variable[] {
  return Object.values(tf.engine().registeredVariables).filter(({ trainable }) => trainable);
}

/** All variables, including untrained ones. */
export function allVariables(given: Trainable): Variable[] {
  const list: unknown = isModel(given) ? given.weights.map((w) => w.read()) : given;
  const expected = 'a model of TensorFlow.js or a list of variables';
  return checked(arrayOf(list, 'model', expected), 'model');
}

export function specsOf(variables: readonly Variable[]): GradientSpec[] {
  return variables.map(({ name, shape }) => ({ name, shape }));
}
