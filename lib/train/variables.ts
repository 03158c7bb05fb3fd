// What there is to train, as a list of variables.
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
 * The trainable variables, in the order in which every rank has them.
 *
 * @throws TypeError for something else, for none, and for those that are not float32.
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

/** All trainable variables there are, as `tf.variableGrads` takes them. */
export function registeredVariables(): Variable[] {
  return Object.values(tf.engine().registeredVariables).filter(({ trainable }) => trainable);
}

/** All variables, also those that are not trained. */
export function allVariables(given: Trainable): Variable[] {
  const list: unknown = isModel(given) ? given.weights.map((w) => w.read()) : given;
  const expected = 'a model of TensorFlow.js or a list of variables';
  return checked(arrayOf(list, 'model', expected), 'model');
}

export function specsOf(variables: readonly Variable[]): GradientSpec[] {
  return variables.map(({ name, shape }) => ({ name, shape }));
}
