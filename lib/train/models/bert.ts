import type { SymbolicTensor } from '@tensorflow/tfjs-layers';

import { attentionLayers } from './attention.js';
import { apply, join, type ModelKind } from './types.js';

const positions = 512;
const width = 128;
const heads = 2;
const blocks = 2;

/**
 * BERT-Tiny (2 layers of width 128) with its pooler, 4,385,920 parameters, and a dense layer for sequence
 * classification: 4,386,178 with 2 classes. All tokens are of one segment, without padding.
 */
export const bertTiny: ModelKind = {
  description: 'BERT-Tiny that classifies sequences, 4,386,178 parameters with 2 classes',
  inputShape: [128],
  classes: 2,
  inputType: 'int32',
  vocabulary: 30522,
  sampleName: 'sentence',
  wrongShape: ([length = 0, ...more]) =>
    more.length === 0 && length >= 1 && length <= positions
      ? undefined
      : `a length of 1 to ${positions}`,
  build(maker, shape, classes, vocabulary) {
    const { layers } = maker;
    const { attention, firstToken, places } = attentionLayers(maker.tf);
    const dense = (
      x: SymbolicTensor,
      units: number,
      activation: 'gelu' | 'tanh' | 'linear' = 'linear',
    ): SymbolicTensor =>
      apply(layers.dense({ units, activation, kernelInitializer: maker.normal(0.02) }), x);
    const norm = (x: SymbolicTensor): SymbolicTensor =>
      apply(layers.layerNormalization({ epsilon: 1e-12 }), x);
    const tokens = maker.input(shape, 'int32');
    const embedding = layers.embedding({
      inputDim: vocabulary,
      outputDim: width,
      embeddingsInitializer: maker.normal(0.02),
    });
    let x = norm(apply(places(positions, maker.normal(0.02)), apply(embedding, tokens)));
    for (let block = 0; block < blocks; ++block) {
      const mixed = join(attention(heads), [dense(x, width), dense(x, width), dense(x, width)]);
      x = norm(join(layers.add(), [x, dense(mixed, width)]));
      const widened = dense(x, 4 * width, 'gelu');
      x = norm(join(layers.add(), [x, dense(widened, width)]));
    }
    // The first token represents the sequence.
    const first = apply(firstToken(), x);
    return maker.model(tokens, dense(dense(first, width, 'tanh'), classes));
  },
};
