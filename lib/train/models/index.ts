// The networks of `gradlink train` by name.
import type * as Layers from '@tensorflow/tfjs-layers';

import { argumentError } from '../../errors.js';
import { modelNames, type ModelName } from '../names.js';
import { oneOf, optionNames, optionsObject } from '../../checks.js';
import { bertTiny } from './bert.js';
import { mobilenetv2 } from './mobilenet.js';
import { resnet20, resnet50 } from './resnet.js';
import { lenet, mlp } from './small.js';
import { LayerMaker, type ModelKind, type ModelOptions, type Tf } from './types.js';

export { modelNames, type ModelName } from '../names.js';
export type { LayerMaker, ModelKind, ModelOptions, SampleShape, Tf } from './types.js';

/** Networks by name. Outputs are logits, [batch, classes]. */
export const modelKinds = {
  resnet20,
  resnet50,
  mobilenetv2,
  lenet,
  mlp,
  'bert-tiny': bertTiny,
} as const satisfies Readonly<Record<ModelName, ModelKind>>;

const modelOptions = optionNames<ModelOptions>({
  inputShape: true,
  classes: true,
  vocabulary: true,
  seed: true,
});

/**
 * Builds a network with the initial weights of `options.seed`.
 *
 * @param tf TensorFlow.js, its backend set
 * @throws TypeError for an unknown name, an unsupported shape, or fewer than one class.
 */
export function buildModel(tf: Tf, name: ModelName, options?: ModelOptions): Layers.LayersModel {
  oneOf(name, 'name', modelNames);
  const given = optionsObject(options, modelOptions, 'buildModel');
  const kind: ModelKind = modelKinds[name];
  const { inputShape = kind.inputShape, classes = kind.classes, seed = 0 } = given;
  const { vocabulary = kind.vocabulary ?? 0 } = given;
  const wrong = kind.wrongShape(inputShape);
  if (wrong !== undefined) {
    const got = { text: `[${inputShape.join(', ')}]` };
    throw argumentError('ERR_INVALID_ARG_VALUE', 'inputShape', `${wrong} (${name})`, got);
  }
  if (!Number.isInteger(classes) || classes < 1) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'classes', 'an integer of at least 1', classes);
  }
  if (!Number.isInteger(vocabulary) || vocabulary < (kind.vocabulary === undefined ? 0 : 1)) {
    const expected = 'an integer of at least 1';
    throw argumentError('ERR_INVALID_ARG_VALUE', 'vocabulary', expected, vocabulary);
  }
  return kind.build(new LayerMaker(tf, seed), inputShape, classes, vocabulary);
}
