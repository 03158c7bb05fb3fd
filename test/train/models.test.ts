import * as core from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';

import { buildModel, modelNames, type ModelName } from '../../lib/train/models/index.js';
import { useTestBackend } from './support.js';

const tf = { core, layers };

beforeAll(async () => {
  // Plain JavaScript takes ten times as long.
  await useTestBackend('wasm');
});

afterEach(() => {
  core.disposeVariables();
});

function trainable(model: layers.LayersModel): { variables: number; parameters: number } {
  const sizes = model.trainableWeights.map(({ shape }) =>
    shape.reduce<number>((product, length) => product * (length ?? 1), 1),
  );
  return { variables: sizes.length, parameters: sizes.reduce((sum, size) => sum + size, 0) };
}

describe('models', () => {
  // He et al. (resnet20), ElasticDL's tables (resnet50, mobilenetv2), PyTorch's tutorial (lenet), Google's BERT-Tiny.
  it.each([
    ['resnet20', undefined, { variables: 59, parameters: 269_722 }],
    ['resnet50', undefined, { variables: 214, parameters: 23_555_082 }],
    ['mobilenetv2', undefined, { variables: 158, parameters: 2_236_682 }],
    ['lenet', undefined, { variables: 10, parameters: 62_006 }],
    ['lenet', [28, 28, 1], { variables: 10, parameters: 61_706 }],
    ['mlp', [28, 28, 1], { variables: 6, parameters: 669_706 }],
    ['bert-tiny', undefined, { variables: 41, parameters: 4_385_920 + 258 }],
  ] as const)('%s for %j has the published parameters', (name, inputShape, expected) => {
    const model = buildModel(tf, name, { inputShape });
    expect(trainable(model)).toEqual(expected);
  });

  it.each(modelNames.filter((name) => name !== 'resnet50'))(
    '%s learns from one batch, in every variable',
    (name: ModelName) => {
      const tokens = name === 'bert-tiny';
      const shape = name === 'resnet20' ? [8, 8, 3] : [32, 32, 3];
      const model = buildModel(
        tf,
        name,
        tokens ? { inputShape: [4], vocabulary: 30 } : { inputShape: shape },
      );
      const inputs = tokens
        ? core.tensor2d([5, 9, 2, 7, 1, 3, 29, 0], [2, 4], 'int32')
        : core.randomUniform([2, ...shape], -1, 1, 'float32', 1);
      const labels = core.oneHot(core.tensor1d([0, 1], 'int32'), tokens ? 2 : 10);
      const loss = () => {
        const logits = model.apply(inputs, { training: true }) as core.Tensor;
        return core.losses.softmaxCrossEntropy<core.Tensor, core.Scalar>(labels, logits);
      };
      const variables = model.trainableWeights.map(
        (weight) => (weight as unknown as { readonly val: core.Variable }).val,
      );
      const { value, grads } = core.variableGrads(loss, variables);
      expect(value.dataSync()[0]).toBeGreaterThan(0);
      const still = Object.entries(grads).filter(([, grad]) =>
        core.tidy(() => core.max(core.abs(grad)).dataSync()[0] === 0),
      );
      // A softmax does not change when the same is added to all its scores: keys' biases have no effect.
      expect(
        still.map(([variable]) => variable).filter((variable) => !variable.includes('bias')),
      ).toEqual([]);
    },
  );

  it('follows from the seed', () => {
    const first = (seed: number): Float32Array =>
      buildModel(tf, 'lenet', { seed }).getWeights()[0]!.dataSync() as Float32Array;
    expect(first(3)).toEqual(first(3));
    expect(first(3)).not.toEqual(first(4));
  });

  it('says what is wrong', () => {
    expect(() => buildModel(tf, 'resnet18' as ModelName)).toThrow(
      /\bresnet20, .*bert-tiny .*\bname, got 'resnet18'/,
    );
    expect(() => buildModel(tf, 'resnet50', { inputShape: [28, 28, 1] })).toThrow(
      /\b32 pixels .*\(resnet50\) .*inputShape, got \[28, 28, 1\]/,
    );
    expect(() => buildModel(tf, 'mlp', { classes: 0 })).toThrow(/\b1 .*classes, got 0/);
  });
});
